/** `node peak_child.mjs ENTRY CALL FILE`: prints by how many bytes the peak memory of the process grows in one call. */
import { pathToFileURL } from 'node:url'

const [, , entry, call, file] = process.argv
const { check, convert, open } = await import(pathToFileURL(entry).href)
const calls = {
  open: () => open(file),
  check: () => check(file),
  convert: () => convert(file, `${file}.onnx`),
}
const before = process.resourceUsage().maxRSS
await calls[call]()
process.stdout.write(String(1024 * (process.resourceUsage().maxRSS - before)))
