/**
 * Ctrl-C ends a command that reads a large file from the page cache, where no read yields to the event loop. Runs
 * what `npm run build:lib` built.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, truncateSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import { temporaryFolder } from './temporary_folder.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const isBuilt = existsSync(MAIN)
if (!isBuilt) console.log(`skipped: the command line is not built (${MAIN}); run "npm run build:all"`)

/** Some ten seconds of hashing; the file has a hole and takes no room. */
const ELEMENTS = 16 * 1024 ** 3
const HEADER_BYTES = 128

const inFolder = temporaryFolder()
const SMALL = inFolder('small.btf')
const LARGE = inFolder('large.npy')

/** NumPy's format version 1.0: magic, version, length of the header, header. */
function npyHeader(count: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES, ' ')
  header.write('\u0093NUMPY\u0001\u0000', 'latin1')
  header.writeUInt16LE(HEADER_BYTES - 10, 8)
  header.write(`{'descr': '|u1', 'fortran_order': False, 'shape': (${count},), }`, 10)
  header.write('\n', HEADER_BYTES - 1)
  return header
}

// Windows ends a process that another one sends a signal to.
describe.skipIf(!isBuilt || process.platform === 'win32')('a command that is interrupted', () => {
  beforeAll(async () => {
    await save(SMALL, [tensor(new Float32Array(1))])
    writeFileSync(LARGE, npyHeader(ELEMENTS))
    truncateSync(LARGE, HEADER_BYTES + ELEMENTS)
  })

  it.each([
    ['--digest', 'SIGINT'],
    ['--stats', 'SIGTERM'],
  ] as const)('inspect %s ends at the first %s', async (option, signal) => {
    const child = spawn(process.execPath, [MAIN, 'inspect', SMALL, LARGE, option], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const exited = once(child, 'exit')
    // The report of the small file says that the signals are listened to, and that the large one comes next.
    await once(child.stdout, 'data')
    await sleep(200)
    child.kill(signal)
    expect(await exited).toEqual([130, null])
  })
})
