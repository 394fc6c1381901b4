/** `s3:`, `gs:` and `az:` URLs against real servers: what all stores promise, and what each says of its own. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { check, open, type RemoteOptions, save, serialize, slice, tensor } from '../../../lib/index.js'
import { AZURE, BUCKET, GCS, S3, type StoreServer } from './store_servers.js'

const weights = tensor(
  Float32Array.from({ length: 6_000_000 }, (_, at) => at),
  { name: 'w', shape: [6000, 1000] },
)

describe.each([S3, GCS, AZURE].map((store) => ({ ...store, start: () => store.start() })))(
  '$scheme:',
  (store) => {
    describe.skipIf(store.program === undefined)('against a server', () => {
      let server: StoreServer
      let remote: RemoteOptions
      beforeAll(async () => {
        server = await store.start()
        remote = server.remote
      }, 30_000)
      afterAll(() => server?.stop())
      const urlOf = (key: string): string => `${store.scheme}://${BUCKET}/${key}`

      it('a large object is uploaded in parts and read back, a small one by one request', async () => {
        for (const [name, content] of [
          ['dir/large and %25.safetensors', weights],
          ['small.npy', tensor(Float32Array.of(1, 2, 3))],
        ] as const) {
          const url = urlOf(name)
          await save(url, content, { remote })
          const file = await open(url, { remote })
          expect(Buffer.compare(await file.dense(0).bytes(), await content.bytes())).toBe(0)
          file.close()
          expect(await check(url, { remote, level: 'strict' })).toEqual([])
        }
      })

      it('a row of a large object takes a few blocks', async () => {
        const url = urlOf('row.safetensors')
        await save(url, weights, { remote })
        const file = await open(url, { remote })
        const row = await slice(file.dense('w'), [[5999, 6000]]).bytes()
        expect(new Float32Array(row.buffer, row.byteOffset, 1)[0]).toBe(5_999_000)
        file.close()
      })

      it('shards and their index', async () => {
        const url = urlOf('shards/m.safetensors.index.json')
        const second = tensor(new Float32Array(3_000_000).fill(7), { name: 'v' })
        await save(url, [weights, second], { remote, maxShardBytes: 24_000_000 })
        const file = await open(url, { remote })
        expect(Buffer.compare(await file.dense('v').bytes(), await second.bytes())).toBe(0)
        expect(file.parts).toHaveLength(2)
        file.close()
      })

      it('an object that changes is ERR_FILE_CHANGED', async () => {
        const url = urlOf('changed.safetensors')
        await save(url, weights, { remote })
        const file = await open(url, { remote })
        await save(url, tensor(new Float32Array(6_000_000), { name: 'w' }), { remote })
        await expect(file.dense('w').bytes()).rejects.toMatchObject({ code: 'ERR_FILE_CHANGED' })
        file.close()
      })

      it('a save that is aborted leaves nothing behind, and an older object whole', async () => {
        const old = tensor(Float32Array.of(1), { name: 'w' })
        for (const key of ['aborted.safetensors', 'old.safetensors']) {
          if (key.startsWith('old')) await save(urlOf(key), old, { remote })
          const controller = new AbortController()
          const saving = save(urlOf(key), weights, {
            remote,
            signal: controller.signal,
            onProgress: ({ bytesDone }) => bytesDone > 10_000_000 && controller.abort(),
          })
          await expect(saving).rejects.toMatchObject({ code: 'ERR_ABORTED' })
          expect(await server.unfinished()).not.toContain(key)
        }
        await expect(open(urlOf('aborted.safetensors'), { remote })).rejects.toMatchObject({ code: 'ERR_IO' })
        const file = await open(urlOf('old.safetensors'), { remote })
        expect(file.dense('w').shape).toEqual([1])
        file.close()
      })

      it('an empty object is an empty file', async () => {
        await server.put('empty.npy', new Uint8Array(0))
        await expect(open(urlOf('empty.npy'), { remote })).rejects.toMatchObject({ code: 'ERR_TRUNCATED' })
      })

      it('what is not there is an error at once, with its URL', async () => {
        const path = urlOf('none.npy')
        await expect(open(path, { remote })).rejects.toMatchObject({
          code: 'ERR_IO',
          path,
          message: expect.stringMatching(/NoSuchKey|BlobNotFound|Not ?Found/),
        })
      })

      it('wrong credentials or an absent service are an error', async () => {
        await server.put('mine.npy', await serialize(tensor(Float32Array.of(1)), { format: 'npy' }))
        await expect(open(urlOf('mine.npy'), { remote: store.wrong(remote) })).rejects.toMatchObject({
          code: 'ERR_IO',
          message: expect.stringMatching(/SignatureDoesNotMatch|ECONNREFUSED|AuthorizationFailure/),
        })
      })
    })

    it.each([
      ['', /names no object/],
      ['%zz.npy', /write %25/],
    ])('refuses the key "%s"', async (key, message) => {
      await expect(open(`${store.scheme}://${BUCKET}/${key}`)).rejects.toMatchObject({
        code: 'ERR_ARGUMENT',
        message: expect.stringMatching(message),
      })
    })
  },
)

it.each([
  [{}, 'ERR_ARGUMENT', /set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT/],
  [
    { az: { account: 'none' } },
    'ERR_UNSUPPORTED',
    /need the package @azure\/identity: npm install @azure\/identity$/,
  ],
  [{ az: { url: 'http://127.0.0.1:1/x', accountKey: 'a' } }, 'ERR_ARGUMENT', /needs remote\.az\.account\.$/],
])('settings of az: that are not enough: %j', async (remote, code, message) => {
  vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', '')
  vi.stubEnv('AZURE_STORAGE_ACCOUNT', '')
  await expect(open('az://container/x.npy', { remote })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  })
  vi.unstubAllEnvs()
})

it('S3 without a region says where it comes from', async () => {
  const s3 = { credentials: { accessKeyId: 'a', secretAccessKey: 'b' } }
  vi.stubEnv('AWS_REGION', undefined)
  vi.stubEnv('AWS_CONFIG_FILE', '/nowhere')
  await expect(open('s3://bucket/x.npy', { remote: { s3 } })).rejects.toMatchObject({
    code: 'ERR_IO',
    message: expect.stringMatching(/Region is missing; set AWS_REGION/),
  })
  vi.unstubAllEnvs()
})
