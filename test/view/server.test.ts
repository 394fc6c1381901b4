/** The server of `tilework view`: who may ask, and answers compared with the library's own. */
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  check,
  type OpenFile,
  open,
  reorder,
  serialize,
  sparseFromDense,
  stringTensor,
  tensor,
} from '../../lib/index.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout.js'
import { encodedBlocks } from '../../lib/tensor/encode_blocks.js'
import { onnxToTmfile } from '../../lib/tmfile.js'
import type {
  BoundLayout,
  GraphColumns,
  PlaneOffsets,
  TensorColumns,
  TileFacts,
  WindowAnswer,
} from '../../lib/view/protocol.js'
import { startViewServer, type ViewServer } from '../../lib/view/server/server.js'
import { floats, OnnxNet } from '../bridges/onnx_tmfile/onnx_net.js'

let server: ViewServer
const opened: OpenFile[] = []

const SHAPE = [3, 20, 30] as const
const VALUES = Float32Array.from({ length: 1800 }, (_, at) => Math.sin(at) * 100)
VALUES[31] = Number.NaN
VALUES[62] = Number.POSITIVE_INFINITY
VALUES[93] = Number.NEGATIVE_INFINITY

beforeAll(async () => {
  const plain = tensor(VALUES, { shape: SHAPE, name: 'plain' })
  const blocked = reorder(
    tensor(
      Float32Array.from({ length: 760 }, (_, at) => at),
      { shape: [2, 19, 4, 5], name: 'blocked' },
    ),
    'b_fs_yx_fsv16',
  )
  const big = tensor(new BigInt64Array([2n ** 60n, -5n]), { shape: [2], name: 'big' })
  const halves = tensor([1.5, -2], { dtype: 'float16', name: 'halves' })
  const nibbles = tensor(Int8Array.of(-8, 7, 3, -1), { dtype: 'int4', shape: [2, 2], name: 'nibbles' })
  const flags = tensor([true, false], { dtype: 'bool', name: 'flags' })
  const files = [
    await serialize([plain, blocked, big, halves, flags], { format: 'safetensors' }),
    await serialize([plain, nibbles, stringTensor(['a', 'ü'], { name: 'texts' })], { format: 'onnx' }),
    await serialize(
      [await sparseFromDense(tensor(Float32Array.of(0, 0, 3, 0, 5, 0), { shape: [2, 3], name: 'sparse' }))],
      { format: 'btf' },
    ),
  ]
  for (const bytes of files) opened.push(await open(bytes))
  server = await startViewServer(
    opened.map((file, at) => ({ name: `file${at}`, file, check: () => check(files[at]!) })),
    0,
  )
})
afterAll(async () => {
  await server.close()
  for (const file of opened) file.close()
})

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** `fetch` cannot set the headers Host and Origin, or ask for a path with dots. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const sent = request({
      hostname,
      port,
      path,
      method,
      headers: { host: `${hostname}:${port}`, ...headers },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) }),
      )
    })
    sent.end()
  })
}

/** Below the token; tensors are named by their names, which become indices. */
const below = (path: string): string =>
  new URL(server.url).pathname +
  path.replace(/file=(\d)&tensor=([a-z]+)/, (_, file: string, name: string) => {
    const index = [...opened[Number(file)]!.tensors].findIndex((each) => each.name === name)
    return `file=${file}&tensor=${index}`
  })

async function api<T>(path: string): Promise<T> {
  const { status, body } = await ask(below(`api/${path}`))
  expect(status, body.toString()).toBe(200)
  return JSON.parse(body.toString()) as T
}

describe('who may ask', () => {
  it('answers its own page with headers that confine it', async () => {
    const { status, headers } = await ask(below(''))
    expect(status).toBe(200)
    expect(headers['content-security-policy']).toContain(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    )
    expect(headers['content-security-policy']).not.toContain('unsafe')
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })

  it.each([
    ['a foreign Host', { host: 'evil.example' }],
    ['a name that resolves to this machine', { host: '127.0.0.1.evil.example:80' }],
    ['the Host of another port', { host: '127.0.0.1:1' }],
    ['a foreign Origin', { origin: 'http://evil.example' }],
    ['the Origin of a file', { origin: 'null' }],
    ['the Origin of another port', { origin: 'http://127.0.0.1:1' }],
    ['a request that another site started', { 'sec-fetch-site': 'cross-site' }],
    ['a request of another port of this machine', { 'sec-fetch-site': 'same-site' }],
  ])('refuses %s', async (_, headers) => {
    const { status, body } = await ask(below('api/files'), headers)
    expect(status === 403 || status === 400).toBe(true)
    expect(body.toString()).not.toContain('safetensors')
  })

  it('refuses a Host that occurs twice', async () => {
    const { host, hostname, port } = new URL(server.url)
    const text = await new Promise<string>((resolve) => {
      const socket = connect({ host: hostname, port: Number(port) }, () =>
        socket.write(`GET ${below('api/files')} HTTP/1.1\r\nHost: ${host}\r\nhost: ${host}\r\n\r\n`),
      )
      socket.once('data', (data) => {
        resolve(String(data))
        socket.destroy()
      })
    })
    expect(text).toMatch(/^HTTP\/1\.1 40[03] /)
  })

  it('refuses every token but its own', async () => {
    const token = new URL(server.url).pathname.split('/')[1]!
    expect(token).toMatch(/^[\w-]{32}$/)
    for (const wrong of ['', 'x', token.slice(1), `${token}x`, token.toUpperCase(), `${token}%20`]) {
      for (const path of ['', 'api/files', 'page.js']) {
        expect((await ask(`/${wrong}/${path}`)).status).toBe(403)
      }
    }
    expect((await ask('/api/files')).status).toBe(403)
    const other = await startViewServer([], 0)
    expect(other.url).not.toContain(token)
    await other.close()
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE'])('refuses %s', async (method) => {
    const { status, headers } = await ask(below('api/files'), {}, method)
    expect(status).toBe(405)
    expect(headers.allow).toBe('GET')
  })

  it.each([
    'index.html',
    '../package.json',
    '..%2fpackage.json',
    'api/../../package.json',
    '%2e%2e/package.json',
    'api/files/',
    'constructor',
    'api/constructor',
    '/etc/passwd',
    'page.js/../../package.json',
    'file:///etc/passwd',
    'page.js%00.html',
    'C:\\Windows\\win.ini',
  ])('has nothing at %s', async (path) => {
    expect((await ask(below(path))).status).toBe(404)
  })

  it.each(['-1', '99', '1.5', '../0', '0x0', '', 'NaN', '1e0', '00000000000000000'])(
    'has no file %s',
    async (file) => {
      expect((await ask(below(`api/tensors?file=${encodeURIComponent(file)}`))).status).toBe(400)
    },
  )

  it('listens on loopback alone', async () => {
    const { port } = new URL(server.url)
    const others = Object.values(networkInterfaces()).flatMap((each = []) =>
      each.flatMap(({ address, family, internal }) => (internal || family !== 'IPv4' ? [] : [address])),
    )
    for (const host of others) {
      const outcome = await new Promise((resolve) => {
        const socket = connect({ host, port: Number(port) })
        socket.on('connect', () => resolve('connected')).on('error', ({ message }) => resolve(message))
      })
      expect(outcome).toContain('ECONNREFUSED')
    }
  })
})

it('ships a page of at most 600 kB compressed, in four files without addresses of others', () => {
  const folder = fileURLToPath(new URL('../../dist/view', import.meta.url))
  const files = readdirSync(folder).filter((name) => !name.endsWith('.map'))
  expect(files.toSorted()).toEqual(['graph_worker.js', 'index.html', 'page.css', 'page.js'])
  const texts = files.map((name) => readFileSync(join(folder, name)))
  expect(texts.reduce((sum, text) => sum + gzipSync(text).length, 0)).toBeLessThan(600_000)
  // Names of XML and a licence are no requests.
  const addresses = texts.flatMap((text) => [...text.toString().matchAll(/https?:\/\/([^/"'`\s]+)/g)])
  expect([...new Set(addresses.map(([, host]) => host))].filter((host) => host !== 'www.w3.org')).toEqual([])
})

describe('answers', () => {
  it('lists files and tensors', async () => {
    const files = await api<object[]>('files')
    expect(files).toMatchObject([
      { name: 'file0', format: 'safetensors', tensors: 5, hasGraph: false },
      { name: 'file1', format: 'onnx', hasGraph: true },
      { name: 'file2', format: 'btf', tensors: 1 },
    ])
    const columns = await api<TensorColumns>('tensors?file=0&start=1&count=3')
    const rows = [1, 2, 3].map((index) => opened[0]!.tensors.at(index)!)
    expect(columns).toMatchObject({ start: 1, total: 5 })
    expect(columns.name).toEqual(rows.map(({ name }) => name))
    expect(columns.elements).toEqual(rows.map(({ size }) => size))
    expect(columns.byteLength).toEqual(rows.map((each) => each.kind === 'dense' && each.storage.byteLength))
    expect(await api('tensor?file=0&tensor=blocked')).toMatchObject({ name: 'blocked', shape: [2, 19, 4, 5] })
  })

  it('counts statistics', async () => {
    const found = await api<{ histogram: { counts: number[] } }>('statistics?file=0&tensor=plain')
    expect(found).toMatchObject({ count: 1800, nans: 1, infinities: 2 })
    expect(found.histogram.counts.reduce((sum, count) => sum + count)).toBe(1797)
  })

  it('counts the entries of a sparse tensor, not the zeros between them', async () => {
    expect(await api('statistics?file=2&tensor=0')).toMatchObject({ count: 2, min: 3, max: 5, zeros: 0 })
  })

  it('shows values with their bits and offsets', async () => {
    const at = 'file=0&tensor=plain&fixed=1,0,0&rows=2,4&columns=28,30'
    const window = await api<{ values: unknown[]; codes: string[]; offsets: number[] }>(`values?${at}`)
    const expected = [688, 689, 718, 719]
    expect(window.offsets).toEqual(expected)
    expect(window.values).toEqual(expected.map((offset) => VALUES[offset]))
    const view = new DataView(VALUES.buffer)
    expect(window.codes).toEqual(
      expected.map((offset) =>
        view
          .getUint32(4 * offset, true)
          .toString(16)
          .padStart(8, '0'),
      ),
    )
  })

  it('turns the plane where rows are a later axis than columns', async () => {
    const at = 'file=0&tensor=plain&rowAxis=2&columnAxis=0&fixed=0,7,0&rows=4,6&columns=0,3'
    const { values, offsets } = await api<{ values: unknown[]; offsets: number[] }>(`values?${at}`)
    const expected = [4, 5].flatMap((x) => [0, 1, 2].map((b) => b * 600 + 7 * 30 + x))
    expect(offsets).toEqual(expected)
    expect(values).toEqual(expected.map((offset) => VALUES[offset]))
  })

  it('says where a blocked tensor stores a value', async () => {
    const { values, offsets } = await api<{ values: number[]; offsets: number[] }>(
      'values?file=0&tensor=blocked&rowAxis=1&columnAxis=3&fixed=1,0,2,0&rows=15,18&columns=1,2',
    )
    const index = (f: number): number => ((19 + f) * 4 + 2) * 5 + 1
    expect(values).toEqual([15, 16, 17].map(index))
    const offset = (f: number): number => (((2 + Math.floor(f / 16)) * 4 + 2) * 5 + 1) * 16 + (f % 16)
    expect(offsets).toEqual([15, 16, 17].map(offset))
  })

  it.each([
    [0, 'big', ['1152921504606846976', -5], ['1000000000000000', 'fffffffffffffffb']],
    [0, 'halves', [1.5, -2], ['3e00', 'c000']],
    [0, 'flags', [true, false], ['01', '00']],
    [1, 'nibbles', [-8, 7, 3, -1], ['8', '7', '3', 'f']],
    [2, '0', [0, 0, 3, 0, 5, 0], undefined],
    [1, 'texts', ['a', 'ü'], undefined],
  ])('shows the values of file %i, tensor %s', async (file, index, values, codes) => {
    const found = await api<{ values: unknown[]; codes?: string[] }>(`values?file=${file}&tensor=${index}`)
    expect(found.values).toEqual(values)
    expect(found.codes).toEqual(codes)
  })

  it('shows what the values of quantized blocks are made of, in a turned plane too', async () => {
    const numbers = Float32Array.from({ length: 3 * 64 }, (_, at) => Math.sin(at) * (1 + at))
    const blocks = encodedBlocks(tensor(numbers, { shape: [3, 64], name: 'w' }), 'q4_1')
    const file = await open(await serialize([blocks], { format: 'gguf' }))
    const own = await startViewServer([{ name: 'w.gguf', file, check: async () => [] }], 0)
    try {
      for (const query of ['rows=1,3&columns=30,35', 'rows=30,35&columns=1,3&rowAxis=1&columnAxis=0']) {
        const answer = await fetch(`${own.url}api/values?file=0&tensor=0&${query}`)
        const { values, codes, blocks: parts } = (await answer.json()) as WindowAnswer
        expect(values).toHaveLength(10)
        expect(codes).toBeUndefined()
        const made = values.map((_, at) => {
          const [code, scale, minimum] = [parts!.codes, parts!.scales, parts!.minimums].map((list) =>
            Number(list[at]),
          )
          expect(Number.isInteger(code) && code! >= 0 && code! <= 15).toBe(true)
          return Math.fround(Math.fround(scale! * code!) + minimum!)
        })
        expect(made).toEqual(values)
        // The 32 elements of a block share a scale.
        expect(new Set(parts!.scales).size).toBe(4)
      }
    } finally {
      await own.close()
      file.close()
    }
  })

  it('refuses more values than a screen shows', async () => {
    expect((await ask(below('api/values?file=0&tensor=plain&rows=0,99'))).status).toBe(400)
  })
})

describe('layouts', () => {
  it.each(LAYOUT_NAMES)('%s: every element is in the slot that its offset names', async (name) => {
    const layout = parseLayout(name)
    const shape = storedShape(name)
    const { elements, byteLength } = layout.storage(shape, { dtype: 'float16' })
    const query = `name=${name}&shape=${shape}&dtype=float16`
    const bound = await api<BoundLayout>(`layout?${query}&count=4096`)
    expect(bound).toMatchObject({ name: layout.name, elements, byteLength, start: 0 })
    expect(bound.elements % bound.blockLength).toBe(0)
    const plane = await api<PlaneOffsets>(
      `offsets?${query}&rowAxis=1&columnAxis=0&fixed=${bound.shape.map(() => 0)}`,
    )
    for (const [at, offset] of plane.offsets.entries()) {
      const index = [at % plane.columns, Math.floor(at / plane.columns)]
      if (offset < bound.cells.length) expect(bound.cells[offset]!.slice(0, 2)).toEqual(index)
      expect(layout.offsetOf(shape, [...index, ...shape.slice(2).map(() => 0)], { dtype: 'float16' })).toBe(
        offset,
      )
    }
    const elementsFound = bound.cells.filter((cell) => cell !== null).length
    if (elements <= 4096) expect(elementsFound).toBe(shape.reduce((all, extent) => all * extent, 1))
  })

  // Catches digits on the page that are false for the last column.
  it('omits the digits where no one list describes all elements', async () => {
    const digitsOf = async (x: number) =>
      (await api<BoundLayout>(`layout?name=iy_xs_os_xsv2_osv8__ao32&shape=5,1,1,${x}`)).digits
    expect(await digitsOf(3)).toBe(undefined)
    expect((await digitsOf(2))!.map(({ text }) => text)).toEqual(['i', 'y', 'x/2', 'o/8', 'x%2', 'o%8'])
  })

  it('explains a reorder, and says what is wrong with a shape', async () => {
    const { text } = await api<{ text: string }>('explain?from=bfyx&to=byxf&shape=1,3,8,8&dtype=uint8')
    expect(text).toContain('bfyx to byxf')
    const { status, body } = await ask(below('api/layout?name=bfyx&shape=1,2,3,4,5'))
    expect(status).toBe(400)
    expect(JSON.parse(body.toString())).toMatchObject({ error: { code: 'ERR_LAYOUT_SHAPE' } })
  })
})

/** A shape that a layout stores: images and Winograd filters take some extents only. */
function storedShape(name: string): number[] {
  const layout = parseLayout(name)
  const usual = [2, 5, 3, 2, 2, 1, 1, 2].slice(0, layout.axes.length || 2)
  for (const shape of [usual, ...shapesOf(4)]) {
    try {
      layout.storage(shape, { dtype: 'float16' })
      return shape
    } catch {}
  }
  throw new Error(`no shape for ${name}`)
}

function* shapesOf(rank: number): Generator<number[]> {
  if (rank === 0) return yield []
  for (const rest of shapesOf(rank - 1)) for (const extent of [1, 3, 4, 5, 8, 16]) yield [...rest, extent]
}

describe('graphs', () => {
  it('number values, name subgraphs and fused activations, and place findings', async () => {
    const net = new OnnxNet()
    const convolved = net.op('Conv', [[1, 3, 8, 8], floats(8, 3, 3, 3), floats(8)], { pads: [1, 1, 1, 1] })
    const onnx = net.out(net.op('Relu', [convolved]))
    const { model: tmfile } = await onnxToTmfile(onnx)
    const inner = new OnnxNet()
    const chosen = inner.out(inner.op('Neg', [inner.input([2])])).graph
    onnx.graph.addInput('condition', { kind: 'tensor', dtype: 'bool', shape: [] })
    onnx.graph.addNode({
      opType: 'If',
      name: 'branch',
      inputs: ['condition'],
      outputs: ['z'],
      attributes: {
        then_branch: { type: 'GRAPH', value: chosen },
        else_branch: { type: 'GRAPH', value: chosen },
      },
    })
    const finding = { severity: 'error', code: 'ERR_GRAPH', offset: 0, message: 'made up' } as const
    const paths = [
      'graph.node[1].input',
      'nodes[2].params',
      'graph.node[2].attribute[0].g.node[0]',
      'tensors[4]',
    ]
    const models = [await serialize(onnx), await serialize(tmfile)]
    const modelFiles = await Promise.all(models.map((bytes) => open(bytes)))
    const other = await startViewServer(
      modelFiles.map((file) => ({
        name: 'model',
        file,
        check: async () => paths.map((path) => ({ ...finding, path })),
      })),
      0,
    )
    const answer = async <T>(path: string): Promise<T> =>
      (await (await fetch(`${other.url}api/${path}`)).json()) as T
    const graph = await answer<GraphColumns>('graph?file=0')
    expect(graph.operators).toEqual(['Conv', 'Relu', 'If'])
    expect(graph.subgraphs).toEqual([
      [2, 1],
      [2, 2],
    ])
    expect((await answer<{ path: string }[]>('graphs?file=0')).map(({ path }) => path)).toEqual([
      '',
      'branch.then_branch',
      'branch.else_branch',
    ])
    const nameOf = (value: number): string => graph.values[value]!
    expect(graph.inputs[1]!.map(nameOf)).toEqual(graph.outputs[0]!.map(nameOf))
    expect(graph.tensors[graph.inputs[0]![1]!]).toBe(0)
    const types = await answer<Record<string, string>>('types?file=0')
    expect(types[nameOf(graph.outputs[0]![0]!)]).toBe('float32 [1, 8, 8, 8]')
    const ofTmfile = await answer<GraphColumns>('graph?file=1')
    const activations = ofTmfile.operators.flatMap((operator, node) =>
      operator === 'Convolution' ? [ofTmfile.activations[node]] : [],
    )
    expect(activations).toEqual(['ReLU'])
    const found = await answer<{ node: number; graph: number }[]>('findings?file=0')
    expect(found.map(({ node, graph: at }) => [node, at])).toEqual([
      [1, 0],
      [2, 0],
      [-1, -1],
      [-1, -1],
    ])
    await other.close()
    for (const file of modelFiles) file.close()
  })
})

it.each(['tile?height=300&width=300', 'statistics?bins=8'])(
  'stops reading for %s when the request ends',
  async (path) => {
    let reads = 0
    const header = await serialize([tensor(new Uint8Array(4), { shape: [2, 2] })], { format: 'npy' })
    const extent = 8192
    const text = Buffer.from(header.subarray(0, 128))
      .toString('latin1')
      .replace('(2, 2)', `(${extent}, ${extent})`)
    const bytes = Buffer.from(`${text.slice(0, 127).trimEnd().padEnd(127)}\n`, 'latin1')
    const file = await open({
      byteLength: 128 + extent * extent,
      read: async (start: number, end: number) => {
        reads++
        await new Promise((resolve) => setTimeout(resolve, 1))
        const found = new Uint8Array(end - start)
        if (start < bytes.length) found.set(bytes.subarray(start, Math.min(bytes.length, end)))
        return found
      },
    })
    reads = 0
    const slow = await startViewServer([{ name: 'slow', file, check: async () => [] }], 0)
    const controller = new AbortController()
    const answer = fetch(`${slow.url}api/${path}&file=0&tensor=0`, { signal: controller.signal })
    let isEnded = false
    const ended = answer.catch(() => {
      isEnded = true
    })
    while (reads < 3 && !isEnded) await new Promise((resolve) => setTimeout(resolve, 1))
    controller.abort()
    await ended
    await expect(answer).rejects.toThrow()
    // The band that is being read is completed.
    for (let before = -1; before !== reads; ) {
      before = reads
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    const readsOfEnded = reads
    reads = 0
    await (await fetch(`${slow.url}api/${path}&file=0&tensor=0`)).arrayBuffer()
    expect(readsOfEnded).toBeLessThan(reads)
    await slow.close()
    file.close()
  },
)

describe('heat maps', () => {
  interface Tile extends TileFacts {
    readonly values: readonly number[]
    readonly marks: readonly number[]
  }

  async function tile(query: string): Promise<Tile> {
    const { status, headers, body } = await ask(below(`api/tile?${query}`))
    expect(status, body.toString()).toBe(200)
    const facts = JSON.parse(String(headers['x-tile'])) as TileFacts
    const count = facts.cellRows * facts.cellColumns
    const bytes = Uint8Array.from(body)
    return {
      ...facts,
      values: Array.from(new Float64Array(bytes.buffer, 0, count)),
      marks: Array.from(bytes.subarray(8 * count)),
    }
  }

  /** What cell by cell a plain loop gives. */
  function expected(
    rows: number,
    columns: number,
    at: (row: number, column: number) => number,
    perCell: [number, number],
  ) {
    const cells = [Math.ceil(rows / perCell[0]), Math.ceil(columns / perCell[1])] as const
    return Array.from({ length: cells[0] * cells[1] }, (_, cell) => {
      const found: number[] = []
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column++)
          if (Math.floor(row / perCell[0]) * cells[1] + Math.floor(column / perCell[1]) === cell)
            found.push(at(row, column))
      const finite = found.filter(Number.isFinite)
      return {
        mean: finite.reduce((sum, value) => sum + value, 0) / finite.length,
        min: Math.min(...finite),
        max: Math.max(...finite),
        mark:
          (found.some(Number.isNaN) ? 1 : 0) +
          (found.includes(Number.POSITIVE_INFINITY) ? 2 : 0) +
          (found.includes(Number.NEGATIVE_INFINITY) ? 4 : 0),
      }
    })
  }

  it.each(['mean', 'min', 'max'] as const)('pools by %s', async (pool) => {
    const found = await tile(`file=0&tensor=plain&height=7&width=8&pool=${pool}`)
    expect(found).toMatchObject({
      cellRows: 7,
      cellColumns: 8,
      rowsPerCell: 3,
      columnsPerCell: 4,
      rowStep: 1,
      columnStep: 1,
    })
    const cells = expected(20, 30, (row, column) => VALUES[row * 30 + column]!, [3, 4])
    for (const [at, cell] of cells.entries()) expect(found.values[at]).toBeCloseTo(cell[pool], 9)
    expect(found.marks).toEqual(cells.map(({ mark }) => mark))
    expect(found.low).toBe(Math.min(...found.values))
  })

  it('pools a turned plane and a part of it', async () => {
    const found = await tile(
      'file=0&tensor=plain&rowAxis=2&columnAxis=1&fixed=2,0,0&rows=10,30&columns=4,20&height=5&width=4&pool=max',
    )
    const cells = expected(20, 16, (row, column) => VALUES[1200 + (4 + column) * 30 + 10 + row]!, [4, 4])
    expect(found.values).toEqual(cells.map(({ max }) => max))
  })

  it('marks NaN and infinities of single values', async () => {
    const found = await tile('file=0&tensor=plain&height=20&width=30')
    expect(found.marks[31]).toBe(1 + 8)
    expect(found.marks[62]).toBe(2 + 8)
    expect(found.marks[93]).toBe(4 + 8)
    expect(found.marks.filter((mark) => mark > 0)).toHaveLength(3)
  })

  it('counts the entries of a sparse tensor', async () => {
    const found = await tile('file=2&tensor=0')
    expect(found.values.map((value) => (Number.isNaN(value) ? 0 : value))).toEqual([0, 0, 1, 0, 1, 0])
  })

  it('draws the error of two tensors', async () => {
    const plain = [...opened[0]!.tensors].findIndex(({ name }) => name === 'plain')
    const { body, headers } = await ask(
      below(`api/errors?a=0&aTensor=${plain}&b=1&bTensor=0&pool=max&height=4&width=4`),
    )
    expect(JSON.parse(String(headers['x-tile']))).toMatchObject({ low: 0, high: 0 })
    expect(body).toHaveLength(4 * 4 * 9)
  })

  it('reads a bounded number of elements of a large plane', async () => {
    const bytes = await serialize(
      [tensor(new Uint8Array(5000 * 8000).fill(7), { shape: [5000, 8000], name: 'large' })],
      { format: 'npy' },
    )
    const file = await open(bytes)
    const other = await startViewServer([{ name: 'large', file, check: async () => [] }], 0)
    const answer = await fetch(`${other.url}api/tile?file=0&tensor=0&height=100&width=100`)
    const facts = JSON.parse(answer.headers.get('x-tile')!) as TileFacts
    expect(facts.rowStep * facts.columnStep).toBeGreaterThan(1)
    expect((5000 * 8000) / (facts.rowStep * facts.columnStep)).toBeLessThan(2 ** 24 * 1.1)
    expect(facts).toMatchObject({ low: 7, high: 7 })
    await other.close()
    file.close()
  })
})
