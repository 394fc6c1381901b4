/** One hostile checkpoint for each rule of the README; each is a good file and one lie. */
import { expect, it } from 'vitest'
import { check, open } from '../../../lib/index.js'
import {
  call,
  checkpoint,
  dict,
  get,
  global,
  int,
  join,
  list,
  pickle,
  put,
  tensor,
  text,
  tuple,
} from '../../formats/pytorch/checkpoint_bytes.js'

const opcodes = (letters: string): Uint8Array => Buffer.from(letters, 'latin1')
const system = global('posix', 'system')

function nested(depth: number): Uint8Array {
  let value = list(tensor())
  for (let level = 1; level < depth; level++) value = list(value)
  return value
}

/** Each list holds the one before twice. */
function laughs(count: number): Uint8Array {
  let value = join(list(int(1)), put(0))
  for (let level = 1; level < count; level++) {
    value = join(opcodes(']('), level === 1 ? value : join(value), get(level - 1), opcodes('e'), put(level))
  }
  return value
}

const ATTACKS: readonly [rule: number, name: string, bytes: Uint8Array, code: string, message: string][] = [
  [1, 'GLOBAL', file(call(system, text('true'))), 'ERR_UNSUPPORTED', 'posix.system'],
  [
    1,
    'STACK_GLOBAL',
    file(join(text('os'), text('system'), opcodes('\x93'))),
    'ERR_UNSUPPORTED',
    'os.system',
  ],
  [1, 'INST', file(opcodes('(ios\nsystem\n')), 'ERR_UNSUPPORTED', 'os.system'],
  [1, 'Python 2', file(global('__builtin__', 'eval')), 'ERR_UNSUPPORTED', 'builtins.eval'],
  [
    1,
    'a storage class of another module',
    file(global('os', 'systemStorage')),
    'ERR_UNSUPPORTED',
    'os.systemStorage',
  ],
  [
    1,
    'a class of TorchScript without an archive of it',
    file(global('__torch__', 'M')),
    'ERR_UNSUPPORTED',
    '__torch__.M',
  ],
  [2, 'a call of a tuple', file(call(tuple(), tuple())), 'ERR_UNSUPPORTED', 'a call of a tuple'],
  [2, 'a call of a dtype', file(call(global('torch', 'float32'))), 'ERR_UNSUPPORTED', 'torch.float32'],
  [
    2,
    'another codec',
    file(call(global('_codecs', 'encode'), text('x'), text('base64'))),
    'ERR_HEADER',
    '_codecs.encode',
  ],
  [3, 'EXT1', file(opcodes('\x82\x01')), 'ERR_UNSUPPORTED', 'EXT1'],
  [3, 'LONG4', file(opcodes('\x8b\xff\xff\xff\x7f')), 'ERR_UNSUPPORTED', 'LONG4'],
  [3, 'an unknown opcode', file(opcodes('\xfe')), 'ERR_UNSUPPORTED', '0xfe'],
  [3, 'no STOP', checkpoint({ pickle: opcodes('\x80\x02N') }), 'ERR_TRUNCATED', 'continues after its end'],
  [3, 'a text of 4 GiB', file(opcodes('X\xff\xff\xff\xffab')), 'ERR_TRUNCATED', 'continues after its end'],
  [4, 'no member', file(tensor({ key: '7' })), 'ERR_NO_DATA', '"7"'],
  [4, 'a longer storage', file(tensor({ elements: 2 ** 40 })), 'ERR_HEADER', 'its member has 24'],
  [4, 'a path', file(tensor({ key: '../0' })), 'ERR_HEADER', 'key'],
  [
    4,
    'an unknown class',
    file(tensor({ storageClass: 'EvilStorage' })),
    'ERR_UNSUPPORTED',
    'torch.EvilStorage',
  ],
  [5, 'a shape beyond', file(tensor({ shape: [2, 4] })), 'ERR_OFFSET_RANGE', 'exceeds its storage'],
  [5, 'strides beyond', file(tensor({ strides: [4, 1] })), 'ERR_OFFSET_RANGE', 'exceeds its storage'],
  [5, 'an offset beyond', file(tensor({ offset: 1 })), 'ERR_OFFSET_RANGE', 'exceeds its storage'],
  [5, 'a stride that wraps', file(tensor({ strides: [2n ** 63n - 1n, 1] })), 'ERR_HEADER', 'whole numbers'],
  [5, 'a negative size', file(tensor({ shape: [-2, 3] })), 'ERR_HEADER', 'whole numbers'],
  [5, 'a negative stride', file(tensor({ strides: [-3, 1] })), 'ERR_HEADER', 'whole numbers'],
  [5, 'another rank', file(tensor({ strides: [1] })), 'ERR_HEADER', '2 axes and 1 strides'],
  [
    5,
    '65 axes',
    file(tensor({ shape: Array(65).fill(1), strides: Array(65).fill(1) })),
    'ERR_RANK',
    '65 axes',
  ],
  [5, '2^51 elements', file(tensor({ shape: [2 ** 51], strides: [0] })), 'ERR_LIMIT', 'totalBytes'],
  [6, '201 lists', file(nested(201)), 'ERR_LIMIT', 'more than 200 deep'],
  [6, '2^40 places', file(laughs(40)), 'ERR_LIMIT', 'places'],
  [6, 'a list in itself', file(join(opcodes(']'), put(0), get(0), opcodes('a'))), 'ERR_LIMIT', 'deep'],
  [
    7,
    'a million empty lists',
    file(join(opcodes('('), Buffer.alloc(1_000_000, ']'), opcodes('t'))),
    'ERR_LIMIT',
    'memory',
  ],
  [8, 'a name twice', withMember('archive/data/0'), 'ERR_DUPLICATE', 'name of another member'],
  [8, 'a member outside', withMember('other/data/1'), 'ERR_HEADER', 'outside the folder'],
  [8, 'a byte order', checkpoint({ pickle: pickle(tensor()), byteOrder: 'middle' }), 'ERR_VALUE', '"middle"'],
]

function file(value: Uint8Array): Uint8Array {
  return checkpoint({ pickle: pickle(value) })
}

function withMember(name: string): Uint8Array {
  return checkpoint({ pickle: pickle(tensor()), more: [{ name, content: Buffer.from('x') }] })
}

it.each(ATTACKS)('rule %i: %s is refused', async (_rule, _name, bytes, code, message) => {
  await expect(open(bytes)).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  const findings = await check(bytes)
  expect(findings).toContainEqual(
    expect.objectContaining({ severity: 'error', code, message: expect.stringContaining(message) }),
  )
})

it('200 lists are read', async () => {
  expect((await open(file(nested(200)))).tensors.length).toBe(1)
})

it('keys of objects are keys', async () => {
  const names = ['__proto__', 'constructor', 'toString']
  const { tensors } = await open(file(dict(...names.map((name) => [text(name), tensor()] as const))))
  expect([...tensors].map(({ name }) => name)).toEqual(names)
  expect(tensors.get('__proto__')).toBeDefined()
})

it('a far memo index is a key of a map', async () => {
  const far = join(tensor(), opcodes('r\xff\xff\xff\xff0j\xff\xff\xff\xff'))
  expect((await open(file(far))).tensors.length).toBe(1)
})

it('with unknown: omit, tensors beside a foreign object are read, and those in it are not', async () => {
  const object = call(global('argparse', 'Namespace'), tensor())
  const bytes = file(dict([text('w'), tensor()], [text('args'), object]))
  await expect(open(bytes)).rejects.toThrow('argparse.Namespace')
  const opened = await open(bytes, { unknown: 'omit' })
  expect([...opened.tensors].map(({ name }) => name)).toEqual(['w'])
  expect(opened.findings).toMatchObject([{ code: 'ERR_UNSUPPORTED', omitsTensor: true }])
  expect(opened.pytorch?.values.get('args')).toEqual({ opaque: 'argparse.Namespace' })
})

it('a check names every global of a file', async () => {
  const bytes = file(list(global('os', 'system'), global('builtins', 'exec')))
  const findings = await check(bytes)
  expect(findings.map(({ path }) => path)).toEqual(['os.system', 'builtins.exec'])
})

it('a check finds data that differ from their checksum', async () => {
  const bytes = file(tensor())
  const at = Buffer.from(bytes).indexOf(Buffer.from(Float32Array.of(3, 4).buffer))
  bytes[at]! ^= 1
  expect((await open(bytes)).tensors.length).toBe(1)
  expect(await check(bytes)).toMatchObject([{ code: 'ERR_CHECKSUM', severity: 'error' }])
})
