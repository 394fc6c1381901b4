/** The server of `tilework view` under connections and requests that cost it more than their sender, and after reads that failed. */
import { connect } from 'node:net'
import { expect, it, vi } from 'vitest'
import { type OpenFile, open, serialize, sparseFromDense, tensor } from '../../lib/index.js'
import { inferTypes } from '../../lib/models/onnx/infer/infer.js'
import type { GraphColumns } from '../../lib/view/protocol.js'
import { startViewServer } from '../../lib/view/server/server.js'
import { KnownFile } from '../../lib/view/server/viewed_files.js'
import { floats, OnnxNet } from '../bridges/onnx_tmfile/onnx_net.js'

vi.mock('../../lib/models/onnx/infer/infer.js', { spy: true })

const waitMs = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time))
const served = (file: OpenFile) => startViewServer([{ name: 'file', file, check: async () => [] }], 0)

/** Bytes whose reads take a millisecond each and are counted, or fail. */
class Bytes {
  reads = 0
  isBroken = false
  readonly byteLength: number
  readonly #start: Uint8Array

  constructor(start: Uint8Array, byteLength = start.length) {
    this.#start = start
    this.byteLength = byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.reads++
    await waitMs(1)
    if (this.isBroken) throw new Error('the disk is gone')
    const found = new Uint8Array(end - start)
    found.set(this.#start.subarray(start, end))
    return found
  }
}

/** An npy file of many bands of zeros. */
async function longFile(): Promise<Bytes> {
  const extent = 8192
  const small = await serialize([tensor(new Uint8Array(4), { shape: [2, 2] })], { format: 'npy' })
  const header = Buffer.from(small.subarray(0, 128)).toString('latin1')
  const text = header.replace('(2, 2)', `(${extent}, ${extent})`).slice(0, 127).trimEnd()
  return new Bytes(Buffer.from(`${text.padEnd(127)}\n`, 'latin1'), 128 + extent * extent)
}

it('drops connections that send no request within seconds', { timeout: 30_000 }, async () => {
  const server = await startViewServer([], 0)
  const { hostname: host, port } = new URL(server.url)
  const started = performance.now()
  const closed = Array.from({ length: 80 }, (_, at) => {
    const socket = connect({ host, port: Number(port) }, () => {
      if (at % 2 === 0) socket.write('GET / HTTP/1.1\r\nHost: x\r\n')
    })
    return new Promise((resolve) =>
      socket
        .on('error', () => {})
        .on('close', resolve)
        .resume(),
    )
  })
  await Promise.race([Promise.all(closed), waitMs(12_000)])
  expect(performance.now() - started).toBeLessThan(10_000)
  expect((await fetch(`${server.url}api/files`)).status).toBe(200)
  await server.close()
})

it('ends every request of a connection with it, also those sent without waiting', async () => {
  const bytes = await longFile()
  const file = await open(bytes)
  const server = await served(file)
  bytes.reads = 0
  await (await fetch(`${server.url}api/statistics?file=0&tensor=0`)).text()
  const readsOfOne = bytes.reads
  bytes.reads = 0
  const { hostname: host, port, host: name, pathname } = new URL(server.url)
  const request = `GET ${pathname}api/statistics?file=0&tensor=0 HTTP/1.1\r\nHost: ${name}\r\n\r\n`
  const count = 12
  const socket = connect({ host, port: Number(port) }, () => socket.write(request.repeat(count)))
  while (bytes.reads < count) await waitMs(1)
  socket.destroy()
  for (let before = -1; before !== bytes.reads; ) {
    before = bytes.reads
    await waitMs(200)
  }
  expect(bytes.reads).toBeLessThan((count * readsOfOne) / 2)
  await server.close()
  file.close()
})

it('infers types once', async () => {
  const net = new OnnxNet()
  const model = net.out(net.op('Conv', [[1, 3, 8, 8], floats(8, 3, 3, 3)]))
  const file = await open(await serialize(model))
  const server = await served(file)
  const ask = async () => (await fetch(`${server.url}api/types?file=0`)).json()
  const answers: unknown[] = [...(await Promise.all([ask(), ask()])), await ask()]
  expect(Object.values(answers[0] as object)).toContain('float32 [1, 8, 6, 6]')
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
  expect(inferTypes).toHaveBeenCalledTimes(1)
  await server.close()
  file.close()
})

it('tries again what failed once: descriptions, types and findings', async () => {
  const net = new OnnxNet()
  const model = net.out(net.op('Relu', [[2]]))
  const real = await open(await serialize(model))
  let isBroken = true
  const orFail = <T>(value: T): T => {
    if (isBroken) throw new Error('the disk is gone')
    return value
  }
  const file = {
    get onnx() {
      return orFail(real.onnx)
    },
  } as unknown as OpenFile
  const known = new KnownFile({ name: 'file', file, check: async () => orFail([]) })
  const calls = [() => known.description(), () => known.inferredTypes(), () => known.findings()]
  for (const call of calls) await expect(call()).rejects.toThrow('the disk is gone')
  isBroken = false
  for (const call of calls) expect(await call()).toBeDefined()
  for (const call of calls) expect(call()).toBe(call())
  real.close()
})

it.each([
  ['a sparse tensor', () => sparseFromDense(tensor(Float32Array.of(0, 3, 0, 5), { shape: [2, 2] })), 'btf'],
  [
    'elements of two bits',
    async () => tensor(Int8Array.of(0, 1, -1, -2), { dtype: 'int2', shape: [2, 2], name: 't' }),
    'onnx',
  ],
] as const)('tries again what failed once, and keeps what it computed: %s', async (_, make, format) => {
  const bytes = new Bytes(await serialize([await make()], { format }))
  const file = await open(bytes)
  const server = await served(file)
  const status = async () => (await fetch(`${server.url}api/values?file=0&tensor=0`)).status
  bytes.isBroken = true
  expect(await status()).not.toBe(200)
  bytes.isBroken = false
  expect(await status()).toBe(200)
  bytes.reads = 0
  expect(await status()).toBe(200)
  expect(bytes.reads).toBe(0)
  await server.close()
  file.close()
})

it('finds the subgraphs of nodes with long names', async () => {
  const inner = new OnnxNet()
  const chosen = inner.out(inner.op('Neg', [inner.input([2])])).graph
  const net = new OnnxNet()
  const onnx = net.out(net.op('Relu', [[2]]))
  onnx.graph.addInput('condition', { kind: 'tensor', dtype: 'bool', shape: [] })
  const graph = { type: 'GRAPH', value: chosen } as const
  for (const output of ['y', 'z'])
    onnx.graph.addNode({
      opType: 'If',
      name: `${'n'.repeat(3000)}${output}`,
      inputs: ['condition'],
      outputs: [output],
      attributes: { then_branch: graph, else_branch: graph },
    })
  const file = await open(await serialize(onnx))
  const server = await served(file)
  const answer = await fetch(`${server.url}api/graph?file=0`)
  expect(((await answer.json()) as GraphColumns).subgraphs).toEqual([
    [1, 1],
    [1, 2],
    [2, 3],
    [2, 4],
  ])
  await server.close()
  file.close()
})

/** A file of a million tensors, each of which is made when it is asked for and counted. */
function millionTensors(): { readonly file: OpenFile; readonly made: () => number } {
  const one = tensor(Float32Array.of(1), { name: 'w' })
  let made = 0
  const at = (): typeof one => {
    made++
    return one
  }
  const file = { format: 'btf', byteLength: 1, tensors: { length: 1_000_000, at }, findings: [] }
  return { file: file as unknown as OpenFile, made: () => made }
}

const pipelined = (path: string, host: string, count: number): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(count)

it('answers others while and after a connection pipelines 150 requests, and stops with it', async () => {
  const { file, made } = millionTensors()
  const server = await served(file)
  const { pathname, hostname, port, host } = new URL(server.url)
  const list = `${pathname}api/tensors?file=0`
  await (await fetch(`http://${host}${list}`)).json()
  const perAnswer = made()
  const socket = connect({ host: hostname, port: Number(port) }, () =>
    socket.write(pipelined(list, host, 150)),
  )
  await new Promise((resolve) => socket.once('data', resolve))
  const meanwhile = performance.now()
  expect((await fetch(`${server.url}api/files`)).status).toBe(200)
  expect(performance.now() - meanwhile).toBeLessThan(2000)
  socket.destroy()
  const afterwards = performance.now()
  expect((await fetch(`${server.url}api/files`)).status).toBe(200)
  expect(performance.now() - afterwards).toBeLessThan(2000)
  await waitMs(50)
  const stopped = made()
  await waitMs(200)
  expect(made()).toBe(stopped)
  expect(stopped).toBeLessThan(20 * perAnswer)
  await server.close()
})

it('answers all pipelined requests in order, and closes a connection that sends too many', async () => {
  const server = await served(millionTensors().file)
  const { pathname, hostname, port, host } = new URL(server.url)
  const answers = (count: number): Promise<string> =>
    new Promise((resolve) => {
      let text = ''
      const socket = connect({ host: hostname, port: Number(port) }, () => {
        for (let start = 0; start < count; start++)
          socket.write(pipelined(`${pathname}api/tensors?file=0&count=1&start=${start}`, host, 1))
        socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      })
      socket.on('data', (data) => {
        text += data
      })
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(text))
    })
  const starts = [...(await answers(100)).matchAll(/"start":(\d+)/g)].map(([, start]) => Number(start))
  expect(starts).toEqual(Array.from({ length: 100 }, (_, at) => at))
  expect((await answers(5000)).match(/"start"/g)?.length ?? 0).toBeLessThan(5000)
  expect((await fetch(`${server.url}api/files`)).status).toBe(200)
  await server.close()
})
