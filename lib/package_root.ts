/**
 * Where this package is on disk. Its binary and its manifest lie there, also when a bundler moved its code elsewhere, so
 * nothing may rely on the distance between a source file and the package folder.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE_NAME = 'tilework'

/**
 * The folder of the nearest `package.json` named "tilework", above the running code or in a `node_modules` folder above it.
 *
 * @returns undefined where a bundle runs far from the package
 */
export function packageRoot(): string | undefined {
  for (const start of codeFolders()) {
    for (const folder of foldersUpwards(start)) {
      const installed = join(folder, 'node_modules', PACKAGE_NAME)
      if (isPackage(folder)) return folder
      if (isPackage(installed)) return installed
    }
  }
  return undefined
}

/**
 * Folders that may hold the running code. Bundles in CommonJS have no `import.meta.url`, modules have no `__dirname`, and
 * webpack writes the path of the machine that built the bundle into the first; the started program is the last resort.
 */
export function codeFolders(): string[] {
  const url: unknown = import.meta.url
  const isFile = typeof url === 'string' && url.startsWith('file:')
  const program = process.argv[1]
  return [
    ...(isFile ? [dirname(fileURLToPath(url))] : []),
    ...(typeof __dirname === 'string' ? [__dirname] : []),
    ...(program ? [dirname(program)] : []),
  ]
}

function* foldersUpwards(start: string): Generator<string> {
  for (let folder = start; ; folder = dirname(folder)) {
    yield folder
    if (dirname(folder) === folder) return
  }
}

function isPackage(folder: string): boolean {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return (manifest as { name?: unknown } | null)?.name === PACKAGE_NAME
  } catch {
    return false
  }
}
