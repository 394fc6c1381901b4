/**
 * A worker of `bench -- queue`, in a process of its own. Files of the scheme `bench:` are one small array, and what is written to
 * it is dropped, so that what is measured is the queue. Sends `ready` and `written` to its parent, and ends with it.
 */

import { serialize, tensor } from '../dist/index.js'
import { startWorker } from '../dist/queue.js'
import { registerScheme } from '../dist/remote.js'

const [url, jobs] = process.argv.slice(2)
const values = Float32Array.from({ length: 24 }, (_, at) => at)
const bytes = await serialize(tensor(values, { shape: [1, 2, 3, 4] }), { format: 'npy' })
registerScheme('bench', {
  open: async () => ({
    byteLength: bytes.byteLength,
    read: async (start, end) => bytes.subarray(start, end),
  }),
  create: async () => ({
    partBytes: 1024 ** 2,
    writePart: async () => undefined,
    commit: async () => undefined,
    abort: async () => undefined,
  }),
})
let isFirst = true
const worker = await startWorker({
  queue: { url },
  allowSchemes: ['bench'],
  jobs: Number(jobs),
  onEvent: ({ kind, message }) => {
    if (kind === 'failed') throw new Error(message)
    if (kind !== 'written' || !isFirst) return
    isFirst = false
    process.send('written')
  },
})
process.on('disconnect', () => void worker.stop())
process.send('ready')
