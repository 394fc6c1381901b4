/** Without the packages of the queue every use of it says what to install. */
import Module from 'node:module'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { convertQueued, openQueue, startWorker } from '../../lib/queue.js'
import { runCli } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const queue = { url: 'redis://127.0.0.1:1' }

/** Node's own search for packages, which no test can point at another folder. */
interface PackageSearch {
  _resolveFilename(request: string, ...rest: unknown[]): string
}
const search = Module as unknown as PackageSearch
const find = search._resolveFilename

beforeAll(() => {
  search._resolveFilename = (request, ...rest) => {
    if (request !== 'bullmq') return find.call(Module, request, ...rest)
    throw Object.assign(new Error(`Cannot find module '${request}'`), { code: 'MODULE_NOT_FOUND' })
  }
})
afterAll(() => {
  search._resolveFilename = find
})

it.each<[string, () => Promise<unknown>]>([
  ['openQueue', () => openQueue(queue)],
  ['startWorker', () => startWorker({ queue, roots: [inFolder('.')] })],
  [
    'convertQueued',
    () => convertQueued({ path: inFolder('a.npy') }, { queue, outDir: inFolder('out'), manifest: false }),
  ],
])('%s', async (_, call) => {
  await expect(call()).rejects.toMatchObject({
    code: 'ERR_UNSUPPORTED',
    message: expect.stringMatching(/need the package bullmq: npm install bullmq$/),
  })
})

it('the commands', async () => {
  const { code, stderr } = await runCli(['queue', 'status', '--queue', queue.url])
  expect({ code, stderr }).toEqual({
    code: 64,
    stderr: expect.stringMatching(/^tilework: ERR_UNSUPPORTED: .*npm install bullmq\n$/),
  })
})
