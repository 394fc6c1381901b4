/**
 * `npm run fuzz -- --differential [--cases N] [--target NAME] [--seed N]`: reads the cases of the fuzzers with tilework and with
 * another reader in Python, and compares names, element types, shapes and bytes of the tensors. Where only one of them
 * reads a case, it is counted by reason.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type * as Tilework from '../../lib/index.js'
import { targets } from '../targets.js'

/** What a reader found: a line for each tensor, or why it refuses the case. */
type Answer = { readonly tensors: readonly string[] } | { readonly refused: string }

/** The readers in `readers.py`. */
const TARGETS = ['btf', 'npy', 'onnx', 'safetensors', 'tmfile']
const CASES_AT_ONCE = 2000
/** A file of 100 bytes may declare any shape. */
const MAX_VALUE_BYTES = 2 ** 20

const { values } = parseArgs({
  options: {
    differential: { type: 'boolean' },
    cases: { type: 'string', default: '2000' },
    target: { type: 'string' },
    seed: { type: 'string' },
  },
})
const library = (await import(process.env.TILEWORK_ENTRY as string)) as typeof Tilework
const readers = join(process.cwd(), 'fuzz', 'differential', 'readers.py')
const names = values.target === undefined ? TARGETS : values.target.split(',')
const firstSeed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
const folder = mkdtempSync(join(tmpdir(), 'tilework-differential-'))
let differences = 0
try {
  const all = await targets(library)
  for (const name of names) await compare(name, (seed) => all[name]!.make(seed), Number(values.cases))
} finally {
  rmSync(folder, { recursive: true })
}
process.exit(differences > 0 ? 1 : 0)

async function compare(name: string, make: (seed: number) => Uint8Array, count: number): Promise<void> {
  const probe = spawnSync('python3', [readers, name], { input: '', encoding: 'utf8' })
  if (probe.status !== 0)
    return console.log(`${name}: skipped, ${probe.error ?? probe.stderr.trim().split('\n').at(-1)}`)
  const tally = new Map<string, { count: number; seed: number }>()
  for (let seed = firstSeed; seed < firstSeed + count; seed += CASES_AT_ONCE) {
    const length = Math.min(CASES_AT_ONCE, firstSeed + count - seed)
    const cases = Array.from({ length }, (_, index) => make(seed + index))
    const others = readInPython(name, cases)
    for (const [index, bytes] of cases.entries()) {
      const end = judge(await read(name, bytes), others[index]!)
      if (end.startsWith('DIFFERENT')) {
        differences++
        console.log(`${name} --seed ${seed + index}: ${end}`)
      }
      const kind = end.split(':')[0] === 'DIFFERENT' ? 'different' : end
      const before = tally.get(kind)
      tally.set(kind, { count: (before?.count ?? 0) + 1, seed: before?.seed ?? seed + index })
    }
  }
  console.log(`${name}: ${count} cases from seed ${firstSeed}`)
  for (const [end, { count, seed }] of [...tally].sort(([, one], [, other]) => other.count - one.count))
    console.log(`  ${count} ${end} (seed ${seed})`)
}

function judge(ours: Answer, other: Answer): string {
  if ('refused' in ours && 'refused' in other) return 'refused by both'
  if ('refused' in ours) return `refused by tilework alone: ${ours.refused}`
  if ('refused' in other) return `refused by the other reader alone: ${other.refused}`
  if (ours.tensors.length !== other.tensors.length)
    return `DIFFERENT: ${ours.tensors.length} tensors, the other reader found ${other.tensors.length}`
  for (const [index, line] of ours.tensors.entries()) {
    const otherLine = other.tensors[index]!
    // Values that one of them does not give: external data, types that the other reader cannot represent.
    const isEqual =
      line === otherLine || withoutValues(line) === otherLine || line === withoutValues(otherLine)
    if (!isEqual) return `DIFFERENT: ${line}, the other reader found ${otherLine}`
  }
  return 'equal'
}

function withoutValues(line: string): string {
  return line.slice(0, line.lastIndexOf(' '))
}

async function read(format: string, bytes: Uint8Array): Promise<Answer> {
  const { open, reorder, TileworkError } = library
  try {
    const message = format === 'onnx' ? { message: 'ModelProto' } : {}
    // tmfiles of tensors alone are no models, which the strict level asks for.
    const level = format === 'tmfile' ? 'lenient' : 'strict'
    const file = await open(bytes, { format, level, ...message } as Parameters<typeof open>[1])
    const tensors: string[] = []
    for (const tensor of file.tensors) {
      const { name, kind, shape } = tensor
      if (format === 'onnx' && kind === 'sparse') continue
      const head = `${JSON.stringify(format === 'npy' ? '' : name)} ${kind === 'dense' ? tensor.dtype : kind} [${shape.join()}]`
      const isRead = kind === 'dense' && tensor.hasData && tensor.storage.byteLength <= MAX_VALUE_BYTES
      const packed = isRead
        ? await reorder(tensor, 'row_major')
            .bytes()
            .catch(() => undefined)
        : undefined
      tensors.push(packed ? `${head} ${createHash('sha256').update(packed).digest('hex')}` : head)
    }
    // safetensors has no order of entries.
    return { tensors: format === 'safetensors' ? tensors.sort() : tensors }
  } catch (error) {
    if (error instanceof TileworkError) return { refused: error.code }
    throw error
  }
}

function readInPython(name: string, cases: readonly Uint8Array[]): readonly Answer[] {
  const path = join(folder, 'cases')
  const parts = cases.flatMap((bytes) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    return [length, bytes]
  })
  writeFileSync(path, Buffer.concat(parts))
  const options = { encoding: 'utf8', maxBuffer: 2 ** 30 } as const
  const { status, stdout, stderr } = spawnSync('python3', [readers, name, path], options)
  if (status !== 0) throw new Error(`the other reader of ${name} failed: ${stderr}`)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer)
}
