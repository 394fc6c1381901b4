/** `open('https://…')`: what is asked for, what is repeated, what is refused. The server is real, on loopback. */
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openRemote } from '../../../lib/bytes/remote/schemes.js'
import type { ByteSource } from '../../../lib/index.js'
import { check, convert, type OpenOptions, open, serialize, slice, tensor } from '../../../lib/index.js'
import { runCli } from '../../cli/run_cli.js'
import { modelProto, tensorProto } from '../../formats/onnx/onnx_bytes.js'
import { addModel } from '../../models/onnx/small_model.js'
import { RangeServer } from './range_server.js'

const MIB = 1024 ** 2
const server = new RangeServer()
const other = new RangeServer()
beforeAll(async () => {
  await Promise.all([server.listen(), other.listen()])
})
afterAll(async () => {
  await Promise.all([server.close(), other.close()])
})
afterEach(() => {
  for (const each of [server, other]) {
    each.objects.clear()
    each.requests.length = 0
    each.fault = () => false
    each.knowsRanges = true
  }
})

function pattern(byteLength: number): Uint8Array {
  return Uint8Array.from({ length: byteLength }, (_, at) => (at * 2654435761) >>> 13)
}

type Remote = NonNullable<OpenOptions['remote']>

const openBytes = (url: string, remote?: Remote): Promise<ByteSource> => openRemote(new URL(url), remote)

describe('reads', () => {
  const bytes = pattern(5 * MIB + 12_345)

  it.each([
    ['in a cache', 64 * MIB],
    ['in a cache of two blocks', 2 * 128 * 1024],
    ['without a cache', 0],
  ])('give the bytes of any ranges, also at the same time: %s', async (_, cacheBytes) => {
    const source = await openBytes(server.put('/a', bytes), { cacheBytes })
    expect(source.byteLength).toBe(bytes.byteLength)
    const range = fc
      .tuple(fc.nat(bytes.byteLength), fc.oneof(fc.nat(300), fc.nat(400_000), fc.nat(4 * MIB)))
      .map(([start, length]) => [start, Math.min(start + length, bytes.byteLength)] as const)
    await fc.assert(
      fc.asyncProperty(fc.array(range, { minLength: 1, maxLength: 8 }), async (ranges) => {
        const all = await Promise.all(ranges.map(([start, end]) => source.read(start, end)))
        for (const [index, [start, end]] of ranges.entries()) {
          expect(Buffer.compare(all[index]!, bytes.subarray(start, end))).toBe(0)
        }
      }),
      { numRuns: 25 },
    )
    source.close!()
  })

  it('a large read asks only for what lies between cached blocks', async () => {
    const source = await openBytes(server.put('/a', bytes))
    await source.read(bytes.byteLength - 10, bytes.byteLength)
    server.requests.length = 0
    expect(Buffer.compare(await source.read(0, bytes.byteLength), bytes)).toBe(0)
    const ranges = server.requests.map(({ headers }) => headers.range!.match(/\d+/g)!.map(Number))
    expect(ranges[0]![0]).toBe(131_072)
    expect(ranges.at(-1)![1]).toBe(5 * MIB - 1)
    expect(server.bytesSent).toBe(5 * MIB - 131_072)
    source.close!()
  })

  it('asks once for neighbours, and reads ahead only where reads are sequential', async () => {
    const source = await openBytes(server.put('/a', bytes))
    expect(server.requests).toHaveLength(1)
    await source.read(0, 1000)
    expect(server.requests).toHaveLength(1)
    await source.read(3 * MIB, 3 * MIB + 500_000)
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]!.sent).toBeLessThanOrEqual(5 * 128 * 1024)
    server.requests.length = 0
    for (let at = 0; at < 2 * MIB; at += 4096) await source.read(at, at + 4096)
    expect(server.requests.length).toBeLessThanOrEqual(6)
    await Promise.all(Array.from({ length: 50 }, () => source.read(5 * MIB, 5 * MIB + 10)))
    expect(server.requests.length).toBeLessThanOrEqual(7)
    source.close!()
  })

  it('asks for a payload in parallel parts, and keeps none of it', async () => {
    const large = {
      byteLength: 2 ** 33,
      bytes: (start: number, end: number) => new Uint8Array(end - start).fill(start / MIB),
    }
    server.objects.set('/large', { ...large, etag: '"1"' })
    const source = await openBytes(server.url('/large'))
    const read = await source.read(2 ** 32, 2 ** 32 + 40 * MIB)
    expect(read.byteLength).toBe(40 * MIB)
    expect([read[0], read.at(-1)]).toEqual([4096 % 256, 4129 % 256])
    expect(server.requests).toHaveLength(7)
    server.requests.length = 0
    // A window of a conversion is divided too, so that the connections are used.
    await source.read(2 ** 32, 2 ** 32 + 4 * MIB)
    expect(server.requests).toHaveLength(4)
    source.close!()
  })

  it('opens the header of a file of 10 GB with few requests', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `model.layers.${index}.self_attn.q_proj.weight`)
    const each = 32 * MIB
    const entries = names.map((name, index) => [
      name,
      { dtype: 'F32', shape: [each / 4], data_offsets: [index * each, (index + 1) * each] },
    ])
    const json = Buffer.from(JSON.stringify(Object.fromEntries(entries)))
    const header = Buffer.concat([new Uint8Array(8), json])
    header.writeBigUInt64LE(BigInt(json.byteLength))
    server.objects.set('/model.safetensors', {
      byteLength: header.byteLength + names.length * each,
      bytes: (start, end) => {
        const part = new Uint8Array(end - start)
        part.set(header.subarray(start, end))
        return part
      },
      etag: '"1"',
    })
    const file = await open(server.url('/model.safetensors?signature=secret'))
    expect(file.tensors.length).toBe(300)
    expect(server.requests).toHaveLength(1)
    expect(await slice(file.dense(299), [[0, 4]]).bytes()).toEqual(new Uint8Array(16))
    expect(server.requests.length).toBeLessThanOrEqual(2)
    expect(server.bytesSent).toBeLessThan(MIB)
    file.close()
  })

  it('reads the files that a file names from the same folder', async () => {
    const part = (seed: number): Promise<Uint8Array> =>
      serialize(tensor(new Float32Array(8).fill(seed), { name: `t${seed}` }), { format: 'safetensors' })
    const index = { weight_map: { t1: 'a b.safetensors', t2: 'two.safetensors' } }
    server.put('/folder/a b.safetensors', await part(1))
    server.put('/folder/two.safetensors', await part(2))
    const url = server.put('/folder/m.safetensors.index.json', Buffer.from(JSON.stringify(index)))
    const file = await open(`${url}?key=1`)
    const values = Buffer.from(new Float32Array(8).fill(2).buffer)
    expect(values.equals(await file.dense('t2').bytes())).toBe(true)
    expect(file.parts.map(({ name }) => name)).toEqual(['a b.safetensors', 'two.safetensors'])
    expect(server.requests.every(({ url }) => url.endsWith('?key=1'))).toBe(true)
    file.close()
  })

  it('an ONNX model can be used like one of this machine', async () => {
    const url = server.put('/add.onnx', await serialize(addModel()))
    const file = await open(`${url}?key=1`)
    expect(file.onnx!.graph.nodes.map(({ opType }) => opType)).toEqual(['Add'])
    file.close()
    const { code, stdout, stderr } = await runCli(['inspect', `${url}?key=1`])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('Add')
  })

  it('with addresses "public" a host on this machine is refused before a request', async () => {
    const url = server.put('/a', bytes)
    const before = server.requests.length
    for (const host of [url, url.replace('127.0.0.1', 'localhost')]) {
      await expect(open(host, { remote: { addresses: 'public' } })).rejects.toMatchObject({
        code: 'ERR_IO',
        message: expect.stringContaining('which is not public'),
      })
    }
    expect(server.requests.length).toBe(before)
  })

  it('takes whole objects from a server without ranges, and empty ones', async () => {
    const url = server.put('/a', bytes)
    server.knowsRanges = false
    const source = await openBytes(url)
    expect(Buffer.compare(await source.read(MIB, 4 * MIB), bytes.subarray(MIB, 4 * MIB))).toBe(0)
    expect(server.requests).toHaveLength(1)
    server.knowsRanges = true
    expect((await openBytes(server.put('/empty', new Uint8Array(0)))).byteLength).toBe(0)
    await expect(open(server.put('/empty.npy', new Uint8Array(0)))).rejects.toMatchObject({
      code: 'ERR_TRUNCATED',
    })
  })
})

describe('failures that may pass', () => {
  const bytes = pattern(400_000)
  it.each([
    [
      'status 503',
      (_: unknown, response: import('node:http').ServerResponse) => response.writeHead(503).end(),
    ],
    [
      'status 429 with a wait',
      (_: unknown, response: import('node:http').ServerResponse) =>
        response.writeHead(429, { 'retry-after': '0' }).end(),
    ],
    ['a closed connection', (request: import('node:http').IncomingMessage) => request.socket.destroy()],
    [
      'a response that is cut',
      (request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => {
        response.writeHead(206, { 'content-range': 'bytes 0-131071/400000', 'content-length': 131_072 })
        response.write(bytes.subarray(0, 1000), () => request.socket.destroy())
      },
    ],
    ['silence', () => undefined],
  ])('%s: the request is repeated', async (_, act) => {
    const url = server.put('/a', bytes)
    server.fault = (request, response, number) => {
      if (number % 2 === 0) return false
      act(request, response)
      return true
    }
    const source = await openBytes(url, { timeout: 100 })
    expect(Buffer.compare(await source.read(0, 400_000), bytes)).toBe(0)
    expect(server.requests.length).toBeGreaterThan(2)
    source.close!()
  })

  it('end in an error that says how often was tried, without the secrets of the URL', async () => {
    server.fault = (_, response) => {
      response.writeHead(500).end()
      return true
    }
    const url = server.url('/a?token=secret').replace('//', '//user:secret@')
    const error = await open(url, { remote: { retries: 1 } }).catch((reason: Error) => reason)
    expect(error).toMatchObject({ code: 'ERR_IO', path: server.url('/a') })
    expect(String(error)).toMatch(/status 500 Internal Server Error, in each of 2 attempts/)
    expect(JSON.stringify(error) + String(error)).not.toContain('secret')
    expect(server.requests[0]!.headers.authorization).toMatch(/^Basic /)
  })

  it.each([404, 401, 403, 410])('status %d is not repeated', async (status) => {
    server.fault = (_, response) => {
      response.writeHead(status).end()
      return true
    }
    await expect(open(server.url('/a'))).rejects.toMatchObject({ code: 'ERR_IO' })
    expect(server.requests).toHaveLength(1)
  })

  it('stop with the signal, during a request and during a wait', async () => {
    for (const act of [
      () => undefined,
      (response: import('node:http').ServerResponse) =>
        response.writeHead(503, { 'retry-after': '60' }).end(),
    ]) {
      const controller = new AbortController()
      server.fault = (_, response) => {
        act(response)
        setTimeout(() => controller.abort(), 50)
        return true
      }
      const opening = open(server.url('/a'), { remote: { signal: controller.signal } })
      await expect(opening).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    }
  })
})

describe('an object that changes', () => {
  it.each([
    ['tag', { etag: '"1"' }, { etag: '"2"' }],
    ['weak tag', { etag: 'W/"1"' }, { etag: 'W/"2"' }],
    ['time', { time: 'Tue, 24 Nov 2026 10:00:00 GMT' }, { time: 'Tue, 24 Nov 2026 10:00:01 GMT' }],
    ['length', {}, { byteLength: 999_999 }],
  ])('is ERR_FILE_CHANGED: another %s', async (_, before, after) => {
    const object = {
      byteLength: 1_000_000,
      bytes: (start: number, end: number) => new Uint8Array(end - start),
    }
    server.objects.set('/a', { ...object, ...before })
    const source = await openBytes(server.url('/a'))
    await source.read(500_000, 500_010)
    server.objects.set('/a', { ...object, ...after })
    await expect(source.read(900_000, 900_010)).rejects.toMatchObject({ code: 'ERR_FILE_CHANGED' })
    expect(await source.read(500_000, 500_004)).toEqual(new Uint8Array(4))
    source.close!()
  })
})

describe('redirects', () => {
  const bytes = pattern(300_000)
  const redirect = (to: string) =>
    (server.fault = (request, response) => {
      if (request.url === '/target') return false
      response.writeHead(302, { location: to }).end()
      return true
    })

  it('to the same host are followed, and headers kept', async () => {
    server.put('/target', bytes)
    redirect('/target')
    const source = await openBytes(server.url('/a'), { headers: { Authorization: 'token' } })
    expect(Buffer.compare(await source.read(0, 300_000), bytes)).toBe(0)
    expect(server.requests.every(({ headers }) => headers.authorization === 'token')).toBe(true)
    source.close!()
  })

  it('to the same server keep the user of the URL', async () => {
    server.put('/target', bytes)
    redirect(server.url('/target'))
    const source = await openBytes(server.url('/a').replace('//', '//user:word@'))
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill('Basic dXNlcjp3b3Jk'),
    )
    source.close!()
  })

  it('to other hosts need "any" where these are not public; they get no headers', async () => {
    const target = other.put('/b', bytes)
    redirect(target)
    await expect(open(server.url('/a'))).rejects.toThrow(
      /leads to another host, 127\.0\.0\.1:\d+; the option remote/,
    )
    await expect(open(server.url('/a'), { remote: { redirects: 'public' } })).rejects.toThrow(
      /not a public address/,
    )
    expect(other.requests).toHaveLength(0)
    const source = await openBytes(server.url('/a'), {
      redirects: 'any',
      headers: { authorization: 'token' },
    })
    expect(Buffer.compare(await source.read(0, 300_000), bytes)).toBe(0)
    expect(other.requests[0]!.headers.authorization).toBeUndefined()
    expect(server.requests.at(-1)!.headers.authorization).toBe('token')
    source.close!()
  })

  it.each([
    ['http://localhost:1/', /not a public address/],
    ['http://[::1]/', /not a public address/],
    ['http://[::ffff:10.0.0.1]/', /not a public address/],
    ['http://0x7f.1/', /127\.0\.0\.1, which is not a public address/],
    ['http://0177.0.0.1/', /127\.0\.0\.1, which is not a public address/],
    ['http://2130706433/', /127\.0\.0\.1, which is not a public address/],
    ['http://[64:ff9b::7f00:1]/', /not a public address/],
    ['http://[fe80::1]/', /not a public address/],
    ['http://169.254.169.254/latest/meta-data', /not a public address/],
    ['file:///etc/passwd', /the scheme "file:"/],
    ['data:,x', /the scheme "data:"/],
    ['http://[/?signature=secret', /has no valid URL\.$/],
  ])('to %s are refused with "public"', async (location, message) => {
    redirect(location)
    await expect(open(server.url('/a'), { remote: { redirects: 'public', retries: 0 } })).rejects.toThrow(
      message,
    )
  })

  it('without end are refused', async () => {
    redirect('/b')
    await expect(open(server.url('/a'))).rejects.toThrow(/more than 10 redirects/)
  })

  it('that have expired are asked for again at the original', async () => {
    server.put('/target', bytes)
    redirect('/target?signature=1')
    let isExpired = false
    server.fault = (request, response) => {
      if (request.url === '/a') {
        response.writeHead(302, { location: isExpired ? '/target?signature=2' : '/target?signature=1' }).end()
        return true
      }
      if (!isExpired || request.url!.endsWith('2')) return false
      response.writeHead(403).end()
      return true
    }
    const source = await openBytes(server.url('/a'))
    isExpired = true
    expect(Buffer.compare(await source.read(0, 300_000), bytes)).toBe(0)
    source.close!()
  })
})

it.each([
  'https://user:secret@ho st/x?sig=secret',
  'gopher://user:secret@host/x?sig=secret',
  'https://user:secret@host:99999/',
])('secrets of %s are in no error', async (url) => {
  const error = await open(url).catch((reason: Error) => reason)
  expect(error).toMatchObject({ code: 'ERR_ARGUMENT' })
  expect(String(error)).not.toContain('secret')
})

it('the command follows redirects as --redirects says', async () => {
  other.put('/b.npy', await serialize(tensor(Float32Array.of(1, 2)), { format: 'npy' }))
  server.fault = (_, response) => {
    response.writeHead(307, { location: other.url('/b.npy') }).end()
    return true
  }
  const refused = await runCli(['inspect', server.url('/a.npy')])
  expect(refused.code).toBe(74)
  expect(refused.stderr).toContain('; --redirects public allows that.')
  const allowed = await runCli(['inspect', server.url('/a.npy'), '--redirects', 'any'])
  expect(allowed).toMatchObject({ code: 0, stdout: expect.stringContaining('float32') })
})

describe('hostile answers', () => {
  it.each([
    ['another range', { 'content-range': 'bytes 5-9/100' }],
    ['a range beyond the end', { 'content-range': 'bytes 0-4/3' }],
    ['no total', { 'content-range': 'bytes 0-4/*' }],
    ['a huge total', { 'content-range': `bytes 0-4/${'9'.repeat(30)}` }],
    ['no range', {}],
    ['a compressed object', { 'content-range': 'bytes 0-4/5', 'content-encoding': 'gzip' }],
  ])('%s: an error, at once', async (_, headers) => {
    server.fault = (_request, response) => {
      response.writeHead(206, headers as Record<string, string>).end('12345')
      return true
    }
    await expect(open(server.url('/a'))).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_(IO|UNSUPPORTED)$/),
    })
    expect(server.requests).toHaveLength(1)
  })

  it('a content-range without a length says so', async () => {
    server.fault = (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-4/*' }).end('12345')
      return true
    }
    await expect(open(server.url('/a'))).rejects.toThrow(/which lacks the length of the object\.$/)
  })

  it('headers of a caller cannot add others, and headers without end are not received', async () => {
    const url = server.put('/a', pattern(10))
    const headers = { a: 'b\r\nauthorization: stolen' }
    await expect(open(url, { remote: { headers } })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_/),
    })
    expect(server.requests).toHaveLength(0)
    server.fault = (_request, response) => {
      response.writeHead(206, { 'x-long': 'x'.repeat(100_000) }).end()
      return true
    }
    await expect(open(url, { remote: { retries: 0 } })).rejects.toMatchObject({ code: 'ERR_IO' })
  })

  it.each([
    ['the whole object in place of a range', 200, 'ERR_FILE_CHANGED'],
    ['an error page', 404, 'ERR_IO'],
  ])('a later answer without end is not received: %s', async (_, status, code) => {
    const source = await openBytes(server.put('/a', pattern(2 * MIB)))
    let sent = 0
    const closed = new Promise((resolve) => {
      server.fault = (request, response) => {
        response.writeHead(status)
        const more = (): void => {
          while (response.write(new Uint8Array(MIB))) sent += MIB
          response.once('drain', more)
        }
        more()
        request.socket.once('close', resolve)
        return true
      }
    })
    await expect(source.read(MIB, MIB + 10)).rejects.toMatchObject({ code })
    await closed
    expect(sent).toBeLessThan(64 * MIB)
    source.close!()
  })

  it.each([
    ['file:///etc/passwd'],
    ['http://169.254.169.254/latest/meta-data'],
    ['//169.254.169.254/w.bin'],
    ['../w.bin'],
    ['x/../../w.bin'],
    ['..\\w.bin'],
    ['/etc/passwd'],
    ['C:\\w.bin'],
  ])('the name %s inside a file is refused, and nothing is asked for', async (name) => {
    const index = { metadata: {}, weight_map: { w: name } }
    const external = { location: name }
    const model = modelProto({ initializers: [tensorProto({ dims: [1], name: 'w', external })] })
    for (const url of [
      server.put('/folder/m.safetensors.index.json', Buffer.from(JSON.stringify(index))),
      server.put('/folder/m.onnx', model),
    ]) {
      server.requests.length = 0
      await expect(open(url, { remote: { redirects: 'any' } })).rejects.toMatchObject({
        code: 'ERR_PATH_ESCAPE',
      })
      expect(server.requests).toHaveLength(1)
    }
  })

  it.each(['%2e%2e', 'w.bin?key=2', 'w.bin#x', '@other', '..%2fw.bin'])(
    'the name %s inside a file is that of an object of the same folder',
    async (name) => {
      const w = await serialize(tensor(Float32Array.of(1), { name: 'w' }), { format: 'safetensors' })
      server.put(`/folder/${name}`, w)
      const index = { metadata: {}, weight_map: { w: name } }
      const url = server.put('/folder/m.safetensors.index.json', Buffer.from(JSON.stringify(index)))
      const file = await open(`${url}?key=1`)
      expect([...(await file.dense('w').bytes())]).toEqual([0, 0, 0x80, 0x3f])
      expect(server.requests.map(({ url }) => url)).toContain(`/folder/${encodeURIComponent(name)}?key=1`)
      file.close()
    },
  )

  it('names that no URL can hold are refused', async () => {
    const index = '{"metadata":{},"weight_map":{"w":"\\ud800.safetensors"}}'
    const url = server.put('/m.safetensors.index.json', Buffer.from(index))
    await expect(open(url)).rejects.toMatchObject({ code: 'ERR_PATH_ESCAPE' })
  })

  /** Sends a byte now and then, so that no request is inactive. */
  const drip = (everyMs: number): void => {
    server.fault = (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-99999/100000' })
      const timer = setInterval(() => response.write('x'), everyMs)
      response.on('close', () => clearInterval(timer))
      return true
    }
  }

  it('an answer that drips is ended by the deadline of open, of check and of a conversion', async () => {
    drip(20)
    const late = { code: 'ERR_LIMIT', message: expect.stringContaining('longer than its deadline of 300 ms') }
    const url = server.url('/a.npy')
    for (const call of [
      () => open(url, { remote: { deadline: 300 } }),
      () => check(url, { remote: { deadline: 300 } }),
      () => convert(url, '/nowhere/b.npy', { deadline: 300 }),
    ]) {
      const started = performance.now()
      await expect(call()).rejects.toMatchObject(late)
      expect(performance.now() - started).toBeLessThan(5000)
    }
  })

  it('the command line has the deadline in seconds', async () => {
    drip(20)
    // What is left of it when the file is opened.
    const late = expect.stringMatching(
      /ERR_LIMIT: Opening .* longer than its deadline of (?:\d{1,3}|1000) ms/,
    )
    const { code, stderr } = await runCli([
      'convert',
      server.url('/a.npy'),
      '/nowhere/b.npy',
      '--deadline',
      '1',
    ])
    expect({ code, stderr }).toEqual({ code: 2, stderr: late })
    const zero = await runCli(['convert', server.url('/a.npy'), '/nowhere/b.npy', '--deadline', '0'])
    expect(zero).toMatchObject({ code: 64, stderr: expect.stringContaining('deadline is 0; it must be') })
  })

  it('an answer below the least rate is a failure that may pass', async () => {
    drip(100)
    const remote = { minBytesPerSecond: 1000, retries: 1 }
    await expect(open(server.url('/a'), { remote })).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringMatching(/with \d+ bytes per second.* is 1000, in each of 2 attempts/),
    })
    expect(server.requests).toHaveLength(2)
  })

  it('a wait that a server asks for ends at the deadline', async () => {
    server.fault = (_request, response) => {
      response.writeHead(503, { 'retry-after': '50' }).end()
      return true
    }
    const started = performance.now()
    await expect(open(server.url('/a'), { remote: { deadline: 200 } })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
    })
    expect(performance.now() - started).toBeLessThan(5000)
  })

  it('a deadline that was kept does not end later reads', async () => {
    const file = await open(
      server.put('/a.npy', await serialize(tensor(new Float32Array(10_000)), { format: 'npy' })),
      {
        remote: { deadline: 2000, cacheBytes: 0 },
      },
    )
    await new Promise((resolve) => setTimeout(resolve, 2100))
    expect((await file.dense(0).bytes()).byteLength).toBe(40_000)
    file.close()
  })

  it('more bytes than were asked for are not received', async () => {
    server.fault = (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-4/5' })
      const more = (): void => {
        while (response.write(new Uint8Array(MIB)));
        response.once('drain', more)
      }
      more()
      return true
    }
    await expect(open(server.url('/a'))).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })
})

it.each([
  [{ timeout: 0 }, /timeout is 0; it must be a whole number from 1/],
  [{ deadline: 0 }, /deadline is 0; it must be a whole number of milliseconds from 1/],
  [{ minBytesPerSecond: -1 }, /minBytesPerSecond is -1; it must be a whole number from 0/],
  [{ redirects: 'all' }, /redirects is "all"/],
  [{ headers: { a: 1 } }, /headers\["a"\] is 1/],
  [{ cash: 1 }, /unknown option "cash"/],
])('options are checked: %j', async (remote, message) => {
  await expect(open('x.npy', { remote: remote as Remote })).rejects.toThrow(message)
})
