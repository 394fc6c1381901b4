/** The simplest file copy: reads and writes blocks of 1 MiB, and ends with fsync. */
import { closeSync, fsyncSync, openSync, readSync, rmSync, writeSync } from 'node:fs'

export const BLOCK_BYTES = 1024 * 1024

export function copyInBlocks(input, output) {
  rmSync(output, { force: true })
  const from = openSync(input, 'r')
  const to = openSync(output, 'w')
  const block = new Uint8Array(BLOCK_BYTES)
  for (let count = readSync(from, block); count > 0; count = readSync(from, block)) {
    writeSync(to, block, 0, count)
  }
  fsyncSync(to)
  closeSync(from)
  closeSync(to)
}
