/** Mutated IRs are read or refused, in memory proportional to the file. */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { openvino } from '../../../lib/models/openvino/index.js'
import { readOptions } from '../../formats/npy/npy_bytes.js'
import { sampleIr } from '../../formats/openvino/ir_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'

const MUTATIONS = mutationCount(400)
const SEED = fuzzSeed(20_265)

/** Texts that matter to XML, and numbers at which arithmetic overflows or rounds. */
const TEXTS = [
  ...[
    '<',
    '>',
    '/>',
    '"',
    "'",
    '&',
    '&amp;',
    '&#0;',
    '<!--',
    '-->',
    '<![CDATA[',
    ']]>',
    '<?x',
    '<!DOCTYPE a>',
  ],
  ...[
    '<a>',
    '</layer>',
    '<layers>',
    '<body>',
    '\0',
    '\xff',
    ' offset="0"',
    ' name="w"',
    'Const',
    'string',
    'u3',
  ],
  ...['0', '1', '-1', '4294967296', '9007199254740993', '18446744073709551615', '?', ','],
]

const insert: Change = (bytes, at, random) => {
  const text = Buffer.from(TEXTS[random(TEXTS.length)]!, 'latin1')
  return new Uint8Array([...bytes.subarray(0, at), ...text, ...bytes.subarray(at)])
}

const remove: Change = (bytes, at, random) =>
  new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(at + 1 + random(12))])

const CHANGES: readonly Change[] = [...ANY_FORMAT, copyRun(1, 60), insert, insert, remove]

const { xml, bin } = sampleIr()
const options = (level: Level) => ({ ...readOptions(level), sibling: async () => new CountingSource(bin) })

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const { tensors, model } = await openvino.read(new CountingSource(bytes), options(level))
  for (const tensor of tensors) {
    if (tensor.sizeExact > BigInt(1024 * bytes.length)) continue
    if (tensor.kind === 'dense') expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
    else if (tensor.kind === 'string') await tensor.strings().catch(expectRefusal)
  }
  expect(openvino.describe(model!).graphs.length).toBeGreaterThan(0)
}

it(`${MUTATIONS} mutated IRs are read or refused, and a check agrees`, async () => {
  const random = randomNumbers(SEED)
  await expectReadOrRefused(MUTATIONS, () => mutate(xml, CHANGES, 2, random), {
    read,
    check: (bytes, level) => openvino.check(new CountingSource(bytes), options(level)),
  })
})
