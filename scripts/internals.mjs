/**
 * Gives test programs and benchmarks access to internals of tilework: `dist` is bundled, so they cannot import its files.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from './toolchain.mjs'

const OUT = join(ROOT, 'build', 'internals')

/** The addon, the same object that the library uses in this process. */
export function native() {
  return createRequire(import.meta.url)(join(ROOT, 'build', 'Release', 'tilework.node'))
}

/**
 * Compiles and imports a module of `lib`: `importInternal('layout/plan')`. It shares nothing with `dist`; its TileworkError
 * is a different class.
 */
export async function importInternal(name) {
  const { build } = await import('tsdown')
  const entryName = name.replaceAll('/', '-')
  await build({
    config: false,
    cwd: ROOT,
    entry: { [entryName]: `lib/${name}.ts` },
    outDir: OUT,
    clean: false,
    format: 'esm',
    platform: 'node',
    dts: false,
    fixedExtension: true,
    logLevel: 'error',
  })
  return import(pathToFileURL(join(OUT, `${entryName}.mjs`)).href)
}
