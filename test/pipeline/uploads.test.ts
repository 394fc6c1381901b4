/**
 * Uploads in memory that are damaged or of another kind: the error is the one that the same bytes get by a path, and a
 * file that is not read is named with the formats that are.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { check, type FormatName, open, serialize, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { THIRD_PARTY, thirdPartyPath } from '../shared_fixtures.js'

const inFolder = temporaryFolder()
const FORMATS_READ =
  'the formats that are read are npy, npz, gguf, pytorch, tflite, safetensors, openvino, tmfile, onnx and btf.'

const TENSORS = ['a', 'b'].map((name) => tensor(new Float32Array(64), { shape: [8, 8], name }))

async function fileOf(format: FormatName): Promise<Uint8Array> {
  return new Uint8Array(await serialize(format === 'npy' ? TENSORS[0]! : TENSORS, { format }))
}

async function refusal(input: Parameters<typeof open>[0]): Promise<object> {
  const error = await open(input).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const { code, message, offset, path } = error as Record<string, unknown>
  return { code, message, offset, path }
}

/** The same error by path, from bytes, from a Blob and from a Response. */
async function expectSameError(bytes: Uint8Array<ArrayBuffer>, extension: string): Promise<object> {
  const path = inFolder(`upload.${extension}`)
  writeFileSync(path, bytes)
  const expected = await refusal(path)
  expect(await refusal(bytes)).toEqual(expected)
  expect(await refusal(new Blob([bytes]))).toEqual(expected)
  expect(await refusal(new Response(bytes))).toEqual(expected)
  const findings = await check(bytes)
  expect(findings[0]).toMatchObject({ code: (expected as { code: string }).code, severity: 'error' })
  return expected
}

const copy = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)

it('a cut safetensors header has the error of a file', async () => {
  const bytes = await fileOf('safetensors')
  for (const length of [9, 20, 40, 100]) {
    expect(await expectSameError(copy(bytes.subarray(0, length)), 'safetensors')).toMatchObject({
      code: 'ERR_TRUNCATED',
      message: `The header has 120 bytes; the file has ${length - 8} after the length field.`,
    })
  }
})

it('a huge claim has the error of a file', async () => {
  const bytes = copy(await fileOf('safetensors'))
  new DataView(bytes.buffer).setBigUint64(0, 2n ** 60n, true)
  expect(await expectSameError(bytes, 'safetensors')).toMatchObject({
    code: 'ERR_LIMIT',
    message: 'The header has 1152921504606846976 bytes; limits.headerBytes is 100000000.',
  })
})

it.each<FormatName>(['npy', 'npz', 'safetensors', 'onnx', 'btf'])(
  'a cut %s has the error of a file',
  async (format) => {
    const bytes = await fileOf(format)
    for (const length of [20, 40, bytes.length >> 1, bytes.length - 1]) {
      const error = await expectSameError(copy(bytes.subarray(0, length)), format)
      expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_(TRUNCATED|OFFSET_RANGE)$/) })
    }
  },
)

it('a cut tmfile has the error of a file', THIRD_PARTY, async () => {
  const bytes = readFileSync(thirdPartyPath('tmfile/mnist.tmfile'))
  for (const length of [20, 100, bytes.length >> 1]) {
    await expectSameError(copy(bytes.subarray(0, length)), 'tmfile')
  }
})

it('a tmfile without its last bytes has the error of a file', async () => {
  const bytes = await fileOf('tmfile')
  for (const missing of [1, 2, 15]) {
    expect(await expectSameError(copy(bytes.subarray(0, -missing)), 'tmfile')).toMatchObject({
      code: expect.stringMatching(/^ERR_(TRUNCATED|OFFSET_RANGE)$/),
    })
  }
})

it('a cut model says where it ends', async () => {
  const model = OnnxModel.create()
  model.graph.setInitializer('w', tensor(new Float32Array(1000), { shape: [1000], name: 'w' }))
  const bytes = copy(new Uint8Array(await serialize(model)))
  expect(await expectSameError(bytes.subarray(0, 200), 'onnx')).toMatchObject({
    code: 'ERR_TRUNCATED',
    message: expect.stringMatching(
      /^The file ends \d+ bytes too early, inside field 7 of \d+ bytes: was it copied whole\?$/,
    ),
  })
})

it('an empty upload is truncated, and the formats are listed', async () => {
  const expected = { code: 'ERR_TRUNCATED', message: `memory is empty; ${FORMATS_READ}` }
  await expect(open(new Uint8Array(0))).rejects.toMatchObject(expected)
  expect(await check(new Uint8Array(0))).toMatchObject([expected])
  const named = new File([], 'upload.safetensors')
  await expect(open(named)).rejects.toMatchObject({
    code: 'ERR_TRUNCATED',
    message: 'The file has 0 bytes; a safetensors file has at least 10.',
  })
})

it('the name of a File decides as an extension does', async () => {
  const bytes = copy(await fileOf('btf'))
  // No table at all, so nothing in the bytes tells the format.
  const file = new File([bytes.subarray(0, 7)], 'upload.btf')
  await expect(open(file)).rejects.toMatchObject({
    message: 'The file has 7 bytes; a BTF file has at least 8.',
  })
})

const latin = (text: string, length = 64): Buffer => {
  const bytes = Buffer.alloc(Math.max(length, text.length), 0)
  bytes.write(text, 'latin1')
  return bytes
}

function zipOf(member: string): Buffer {
  const header = Buffer.alloc(30)
  header.write('PK\x03\x04', 'latin1')
  header.writeUInt16LE(member.length, 26)
  return Buffer.concat([header, Buffer.from(member), Buffer.alloc(100, 1)])
}

it.each<[string, Uint8Array]>([
  ['a Keras model (a ZIP archive)', zipOf('metadata.json')],
  ['a ZIP archive without npy arrays', zipOf('word/document.xml')],
  ['an HDF5 file', latin('\x89HDF\r\n\x1a\n')],
  ['a model in the ORT format', latin('\x20\0\0\0ORTM')],
  ['a gzip archive', gzipSync(Buffer.alloc(1000, 7))],
  ['a Zstandard archive', latin('\x28\xb5\x2f\xfd')],
  ['an xz archive', latin('\xfd7zXZ\0')],
  ['a bzip2 archive', latin('BZh91AY&SY')],
  ['a tar archive', Buffer.concat([latin('model/', 257), latin('ustar\x0000', 300)])],
  ['a PNG image', latin('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')],
  ['a JPEG image', latin('\xff\xd8\xff\xe0\0\x10JFIF')],
  ['a WebP image', latin('RIFF\x10\0\0\0WEBPVP8 ')],
  ['a PDF document', latin('%PDF-1.7\n%\xe2\xe3')],
  [
    'a Git LFS pointer',
    Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n'),
  ],
  ['an HTML page', Buffer.from('<!DOCTYPE html><title>502 Bad Gateway – nginx</title>')],
  ['a JSON file', Buffer.from('{"error":"not found"}')],
  ['a text file', Buffer.from('404: Not Found')],
])('%s is named, with the formats that are read', async (name, bytes) => {
  const expected = { code: 'ERR_UNKNOWN_FORMAT', message: expect.stringContaining(`memory is ${name}`) }
  await expect(open(bytes)).rejects.toMatchObject(expected)
  await expect(open(bytes)).rejects.toThrow(FORMATS_READ)
  expect(await check(bytes)).toMatchObject([expected])
  const path = inFolder('named.onnx')
  writeFileSync(path, bytes)
  await expect(open(path)).rejects.toThrow(`${path} is not a file of the format onnx: it is ${name}`)
})

it('a damaged file of the format that was named has the error of its reader', async () => {
  const bytes = Buffer.from('<net name="m" version="11"><layers x="&#0;"/></net>')
  const expected = {
    code: 'ERR_HEADER',
    message: expect.stringContaining('"&#0;" is not a character of XML.'),
  }
  await expect(open(bytes, { format: 'openvino' })).rejects.toMatchObject(expected)
  expect(await check(bytes, { format: 'openvino' })).toMatchObject([expected])
})

it('other bytes are of no known format', async () => {
  await expect(open(Buffer.alloc(100, 0xaa))).rejects.toMatchObject({
    code: 'ERR_UNKNOWN_FORMAT',
    message: `memory is of no format that is known here; ${FORMATS_READ}`,
  })
})
