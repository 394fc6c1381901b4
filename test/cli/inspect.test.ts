/** `tilework inspect` and `tilework check`. */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { open, save, sparseFromDense, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../shared_fixtures.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MIXED = inFolder('mixed.btf')
const BROKEN = inFolder('broken.btf')
const DEVIATING = inFolder('deviating.btf')

interface TensorJson {
  readonly name: string
  readonly kind: string
  readonly dtype: string
  readonly shape: number[]
  readonly layout: string
  readonly byteLength: number
  readonly hasData: boolean
  readonly sha256?: string
  readonly stats?: object | null
}

interface InspectJson {
  readonly file: string
  readonly format: string
  readonly tensors: TensorJson[]
  readonly findings: object[]
}

const sha256 = (...parts: Uint8Array[]): string =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')

beforeAll(async () => {
  const dense = tensor(new Float32Array([1, Number.NaN, -0.5, 0, Number.POSITIVE_INFINITY, 2.5]), {
    shape: [2, 3],
  })
  const scalar = tensor(new BigUint64Array([2n ** 64n - 1n]), { shape: [] })
  const empty = tensor(new Int8Array(0), { shape: [0, 4] })
  const sparse = await sparseFromDense(tensor(new Int32Array([0, 7, 0, 9]), { shape: [2, 2] }))
  await save(MIXED, [dense, scalar, empty, sparse])
  const bytes = readFileSync(MIXED)
  writeFileSync(BROKEN, bytes.subarray(0, 60))
  // A reserved byte of the first record: safe to read, but against the rules.
  const deviating = Buffer.from(bytes)
  deviating[Number(deviating.readBigUInt64LE(8)) + 12] = 1
  writeFileSync(DEVIATING, deviating)
})

describe('inspect', () => {
  it('gives names, types, shapes, sizes and digests', async () => {
    const report = await runJson<InspectJson>(['inspect', MIXED, '--digest'])
    expect(report).toMatchObject({ file: MIXED, format: 'btf', findings: [] })
    expect(report.tensors.map(({ name, kind, dtype, shape }) => ({ name, kind, dtype, shape }))).toEqual([
      { name: '0', kind: 'dense', dtype: 'float32', shape: [2, 3] },
      { name: '1', kind: 'dense', dtype: 'uint64', shape: [] },
      { name: '2', kind: 'dense', dtype: 'int8', shape: [0, 4] },
      { name: '3', kind: 'sparse', dtype: 'int32', shape: [2, 2] },
    ])
    expect(report.tensors.map(({ layout, byteLength }) => [layout, byteLength])).toEqual([
      ['row_major', 24],
      ['row_major', 8],
      ['row_major', 0],
      ['coo', 2 * (2 * 8 + 4)],
    ])
    expect(report.tensors[1]!.sha256).toBe(sha256(Buffer.alloc(8, 255)))
    expect(report.tensors[2]!.sha256).toBe(sha256())
    const indices = Buffer.from(new BigInt64Array([0n, 1n, 1n, 1n]).buffer)
    expect(report.tensors[3]!.sha256).toBe(sha256(indices, Buffer.from(new Int32Array([7, 9]).buffer)))
  })

  it('gives statistics of dense tensors, exact where a double is not', async () => {
    const { tensors } = await runJson<InspectJson>(['inspect', MIXED, '--stats'])
    expect(tensors[0]!.stats).toEqual({
      count: 6,
      min: -0.5,
      max: 2.5,
      mean: 0.75,
      zeros: 1,
      zeroShare: 1 / 6,
      nans: 1,
      infinities: 1,
      histogram: { start: -0.5, width: 0.25, counts: [1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1] },
    })
    expect(tensors[1]!.stats).toMatchObject({ min: '18446744073709551615', max: '18446744073709551615' })
    expect(tensors[2]!.stats).toMatchObject({ min: null, max: null, mean: null, zeros: 0 })
    expect(tensors[3]!.stats).toBeNull()
    const { stdout } = await runCli(['inspect', MIXED, '--stats'])
    expect(stdout).toMatch(/min +max +mean +zeros +NaN +inf +histogram$/m)
    expect(stdout).toMatch(/-0\.500000 +2\.50000 +0\.750000 +1 +1 +1 {2}█ █ {3}█ {5}█$/m)
  })

  it('prints a table whose shapes --shape takes', async () => {
    const { code, stdout, stderr } = await runCli(['inspect', MIXED])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe(`${MIXED}: btf, 4 tensors, ${readFileSync(MIXED).length} B`)
    expect(stdout).toMatch(/^# {2}name {2}kind +dtype +shape +layout +bytes {2}data$/m)
    expect(stdout).toMatch(/^0 {2}0 +dense +float32 {2}2,3 +row_major +24 B {2}yes$/m)
    expect(stdout).toMatch(/^1 {2}1 +dense +uint64 +scalar/m)
    expect(stdout).toMatch(/^3 {2}3 +sparse .* coo +40 B {2}2 entries$/m)
    const coloured = await runCli(['inspect', MIXED], { isTTY: true })
    expect(coloured.stdout).toContain('\u001b[')
  })

  it('shows the metadata of a safetensors file, long ones cut but for JSON', async () => {
    const path = inFolder('described.safetensors')
    const settings = 'x'.repeat(200)
    const metadata = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`key${at}`, `${at}`]))
    await save(path, [tensor(new Float32Array(1), { name: 'w' })], {
      metadata: { ...metadata, key0: settings },
    })
    const { stdout } = await runCli(['inspect', path])
    expect(stdout).toContain(`metadata: key0=${'x'.repeat(80)}…, key1=1, `)
    expect(stdout).toContain('key7=7, and 1 more (--json)\n')
    const report = await runJson<{ metadata: object }>(['inspect', path])
    expect(report.metadata).toEqual({ ...metadata, key0: settings })
    expect(await runJson(['inspect', MIXED])).not.toHaveProperty('metadata')
  })

  it('continues with the next file after an unreadable one', async () => {
    const { code, stdout, stderr } = await runCli(['inspect', BROKEN, MIXED, inFolder('none.btf'), '--json'])
    expect(code).toBe(74)
    const reports = JSON.parse(stdout)
    expect(reports).toHaveLength(3)
    expect(reports[0]).toEqual({ file: BROKEN, error: expect.objectContaining({ code: 'ERR_OFFSET_RANGE' }) })
    expect(reports[1]).toMatchObject({ file: MIXED, format: 'btf' })
    expect(stderr.trimEnd().split('\n')).toHaveLength(2)
    expect((await runCli(['inspect', BROKEN, MIXED])).code).toBe(2)
  })

  it('shows findings of a lenient read below the table', async () => {
    const report = await runJson<InspectJson>(['inspect', DEVIATING])
    expect(report.findings).toEqual([expect.objectContaining({ severity: 'warning', code: 'ERR_GAP' })])
    expect((await runCli(['inspect', DEVIATING])).stdout).toMatch(/^warning ERR_GAP /m)
  })

  it('lists the tensors of an ONNX model whose metadata cannot be read', async () => {
    const model = OnnxModel.create({ opset: 21 })
    model.graph.setInitializer('weight', tensor(new Float32Array([1, 2]), { shape: [2] }))
    model.setMetadata('author', 'someone')
    const path = inFolder('metadata.onnx')
    await save(path, model)
    const bytes = readFileSync(path)
    // The length of the key.
    bytes[bytes.indexOf('author') - 1] = 100
    writeFileSync(path, bytes)
    const report = await runJson<InspectJson>(['inspect', path])
    expect(report.tensors).toEqual([expect.objectContaining({ name: 'weight', hasData: true })])
    expect(report.findings).toEqual([
      expect.objectContaining({ severity: 'error', code: 'ERR_TRUNCATED', path: 'StringStringEntryProto' }),
    ])
  })

  it('digests of the real files are those of their storage bytes', THIRD_PARTY, async () => {
    for (const path of thirdPartyFiles('btf').map(({ path }) => thirdPartyPath(path))) {
      const { tensors } = await runJson<InspectJson>(['inspect', path, '--digest'])
      const file = await open(path)
      expect(tensors).toHaveLength(file.tensors.length)
      for (const [index, report] of tensors.entries()) {
        const stored = file.tensors.at(index)!
        if (stored.kind !== 'dense') throw new Error('The real files hold dense tensors only.')
        expect(report.sha256).toBe(sha256(await stored.bytes()))
        expect(report).toMatchObject({ dtype: stored.dtype, shape: stored.shape, hasData: true })
      }
      file.close()
    }
  })

  it('stops when it is cancelled', async () => {
    const result = await runCli(['inspect', MIXED, '--digest', '--json'], { signal: AbortSignal.abort() })
    expect(result.code).toBe(130)
    expect(JSON.parse(result.stdout).error.code).toBe('ERR_ABORTED')
  })
})

describe('check', () => {
  it('reports that there are no findings', async () => {
    expect(await runCli(['check', MIXED])).toEqual({ code: 0, stdout: 'no findings\n', stderr: '' })
    expect(await runJson(['check', MIXED, '--level', 'strict'])).toMatchObject({
      level: 'strict',
      findings: [],
    })
  })

  it('exits with 1 for an error, and prints one line per finding', async () => {
    const { code, stdout } = await runCli(['check', BROKEN])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error ERR_TRUNCATED @\d+ tensors\[0\]\.dims needs 16 bytes .+$/m)
    const report = await runJson<InspectJson>(['check', BROKEN], 1)
    expect(report.findings[0]).toMatchObject({
      severity: 'error',
      code: expect.any(String),
      offset: expect.any(Number),
    })
  })

  it('a violated rule is a warning when lenient and an error when strict', async () => {
    expect((await runCli(['check', DEVIATING])).code).toBe(0)
    expect((await runCli(['check', DEVIATING, '--level', 'strict'])).code).toBe(1)
  })

  it('names the file where there are several', async () => {
    const { code, stdout } = await runCli(['check', MIXED, BROKEN])
    expect(code).toBe(1)
    expect(stdout).toContain(`${MIXED}: no findings\n`)
    expect(stdout).toContain(`${BROKEN}: error ERR_TRUNCATED`)
  })
})
