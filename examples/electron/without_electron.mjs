// The same work without Electron, as the tests run it: TILEWORK_NO_EXTERNAL_BUFFERS=1 makes the addon copy as it must there.
import { inspect } from './inspect.mjs'

const [, , path] = process.argv
if (path === undefined) throw new Error('usage: node without_electron.mjs FILE')
console.log(JSON.stringify(await inspect(path), undefined, 2))
