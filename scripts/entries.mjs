/** The entries of the package, which package.json exports. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './toolchain.mjs'

const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** What users import, such as `tilework/onnx`, by the name that the entry has in `lib` and `dist`. */
export const IMPORTS = Object.fromEntries(
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => (path === '.' ? ['index', name] : [path.slice(2), `${name}/${path.slice(2)}`])),
)

export const ENTRIES = Object.keys(IMPORTS)
