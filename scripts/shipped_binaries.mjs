/** The binaries that the package will hold: what `npm run prebuild` left in `prebuilds/`. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { ROOT } from './toolchain.mjs'

/** Paths relative to `prebuilds`, with `/`, sorted. @param {string} [root] - of the checkout */
export function shippedBinaries(root = ROOT) {
  const folder = join(root, 'prebuilds')
  if (!existsSync(folder)) return []
  const files = readdirSync(folder, { recursive: true }).map((file) => String(file).replaceAll(sep, '/'))
  return files.filter((file) => file.endsWith('.node')).sort()
}

/** Lines that name the binaries with their sizes. @param {string} [root] - of the checkout */
export function binaryLines(root = ROOT) {
  const binaries = shippedBinaries(root)
  const count = binaries.length === 1 ? '1 binary' : `${binaries.length} binaries`
  return [
    `The package will hold ${count}:`,
    ...binaries.map((path) => {
      const { size } = statSync(join(root, 'prebuilds', path))
      return `  prebuilds/${path}, ${Math.ceil(size / 1024)} KiB`
    }),
    '"npm run prebuild -- --all" adds those of other platforms; without its binary tilework does not load.',
  ]
}
