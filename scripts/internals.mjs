/**
 * Parts of tilework that no public entry has, for test programs and benchmarks: `dist` is bundled, so that they cannot
 * import its files.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from './toolchain.mjs'

const OUT = join(ROOT, 'build', 'internals')

/** The addon itself. It is the one that the library uses in this process: a second load gives the same object. */
export function native() {
  return createRequire(import.meta.url)(join(ROOT, 'build', 'Release', 'tilework.node'))
}

/**
 * A module of `lib`, compiled now: `importInternal('layout/plan')`. It shares nothing with `dist`; its TileworkError is
 * another class.
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
