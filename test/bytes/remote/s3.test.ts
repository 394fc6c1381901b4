/** `s3:` URLs against a real server. */
import { ListMultipartUploadsCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { check, open, type RemoteOptions, save, serialize, slice, tensor } from '../../../lib/index.js'
import { BUCKET, S3_PROGRAM, type S3Gateway, startS3 } from './s3_gateway.js'

describe.skipIf(S3_PROGRAM === undefined)('s3:', () => {
  let gateway: S3Gateway
  let remote: RemoteOptions
  beforeAll(async () => {
    gateway = await startS3(S3_PROGRAM!)
    remote = { s3: gateway.settings }
  })
  afterAll(() => gateway.stop())

  const weights = tensor(
    Float32Array.from({ length: 6_000_000 }, (_, at) => at),
    { name: 'w', shape: [6000, 1000] },
  )

  it('a large object is uploaded in parts and read back, a small one by one request', async () => {
    for (const [name, content] of [
      ['dir/large and %25.safetensors', weights],
      ['small.npy', tensor(Float32Array.of(1, 2, 3))],
    ] as const) {
      const url = `s3://${BUCKET}/${name}`
      await save(url, content, { remote })
      const file = await open(url, { remote })
      expect(Buffer.compare(await file.dense(0).bytes(), await content.bytes())).toBe(0)
      file.close()
      expect(await check(url, { remote, level: 'strict' })).toEqual([])
    }
  })

  it('a row of a large object takes a few blocks', async () => {
    const url = `s3://${BUCKET}/row.safetensors`
    await save(url, weights, { remote })
    const file = await open(url, { remote })
    const row = await slice(file.dense('w'), [[5999, 6000]]).bytes()
    expect(new Float32Array(row.buffer, row.byteOffset, 1)[0]).toBe(5_999_000)
    file.close()
  })

  it('shards and their index', async () => {
    const url = `s3://${BUCKET}/shards/m.safetensors.index.json`
    const second = tensor(new Float32Array(3_000_000).fill(7), { name: 'v' })
    await save(url, [weights, second], { remote, maxShardBytes: 24_000_000 })
    const file = await open(url, { remote })
    expect(Buffer.compare(await file.dense('v').bytes(), await second.bytes())).toBe(0)
    expect(file.parts).toHaveLength(2)
    file.close()
  })

  it('an object that changes is ERR_FILE_CHANGED', async () => {
    const url = `s3://${BUCKET}/changed.safetensors`
    await save(url, weights, { remote })
    const file = await open(url, { remote })
    await save(url, tensor(new Float32Array(6_000_000), { name: 'w' }), { remote })
    await expect(file.dense('w').bytes()).rejects.toMatchObject({ code: 'ERR_FILE_CHANGED' })
    file.close()
  })

  it('a save that is aborted leaves nothing behind', async () => {
    const controller = new AbortController()
    const saving = save(`s3://${BUCKET}/aborted.safetensors`, weights, {
      remote,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    })
    await expect(saving).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    const { Uploads = [] } = await gateway.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
    expect(Uploads.filter(({ Key }) => Key === 'aborted.safetensors')).toEqual([])
    await expect(open(`s3://${BUCKET}/aborted.safetensors`, { remote })).rejects.toMatchObject({
      code: 'ERR_IO',
    })
  })

  it('an empty object is an empty file', async () => {
    await gateway.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'empty.npy', Body: '' }))
    await expect(open(`s3://${BUCKET}/empty.npy`, { remote })).rejects.toMatchObject({
      code: 'ERR_TRUNCATED',
    })
  })

  it.each([
    [`s3://${BUCKET}/none.npy`, 'ERR_IO', /NoSuchKey/],
    ['s3://no-such-bucket/x.npy', 'ERR_IO', /NoSuchBucket/],
    [`s3://${BUCKET}/`, 'ERR_ARGUMENT', /s3:\/\/bucket\/key/],
    [`s3://${BUCKET}/%zz.npy`, 'ERR_ARGUMENT', /write %25/],
  ])('%s: an error that says what is wrong', async (url, code, message) => {
    await expect(open(url, { remote })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  it('wrong credentials are an error at once', async () => {
    const bytes = await serialize(tensor(Float32Array.of(1)), { format: 'npy' })
    await gateway.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'mine.npy', Body: bytes }))
    const s3 = { ...gateway.settings, credentials: { accessKeyId: 'user', secretAccessKey: 'wrong' } }
    const opening = open(`s3://${BUCKET}/mine.npy`, { remote: { s3 } })
    await expect(opening).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringMatching(/SignatureDoesNotMatch/),
    })
  })
})
