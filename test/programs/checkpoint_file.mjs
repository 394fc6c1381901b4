/** Writes a PyTorch checkpoint of float32 matrices in the stream form of torch before 1.6, without the library. */
import { closeSync, openSync, writeSync } from 'node:fs'

const latin = (letters) => Buffer.from(letters, 'latin1')
const PROTOCOL = latin('\x80\x02')
const NUMBER = latin('\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19')

function text(value) {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(Buffer.byteLength(value))
  return Buffer.concat([latin('X'), length, Buffer.from(value)])
}

function int(value) {
  const bytes = Buffer.alloc(5)
  bytes.write('J')
  bytes.writeInt32LE(value, 1)
  return bytes
}

const tuple = (...items) => Buffer.concat([latin('('), ...items, latin('t')])
const global = (module, name) => latin(`c${module}\n${name}\n`)
const pickle = (...parts) => Buffer.concat([PROTOCOL, ...parts, latin('.')])

function tensor(key, rows, columns) {
  const id = tuple(
    text('storage'),
    global('torch', 'FloatStorage'),
    text(key),
    text('cpu'),
    int(rows * columns),
    latin('N'),
  )
  const hooks = Buffer.concat([global('collections', 'OrderedDict'), latin(')R')])
  const shape = [tuple(int(rows), int(columns)), tuple(int(columns), int(1))]
  const args = tuple(id, latin('Q'), int(0), ...shape, latin('\x89'), hooks)
  return Buffer.concat([global('torch._utils', '_rebuild_tensor_v2'), args, latin('R')])
}

/** @param matrices - `{ rows, columns, bytes }` each */
export function writeCheckpoint(path, matrices) {
  const keys = matrices.map((_, at) => String(at))
  const entries = matrices.flatMap(({ rows, columns }, at) => [
    text(`layer.${at}.weight`),
    tensor(keys[at], rows, columns),
  ])
  const file = openSync(path, 'w')
  const parts = [
    pickle(NUMBER),
    pickle(latin('M\xe9\x03')),
    pickle(latin('}')),
    pickle(latin('}('), ...entries, latin('u')),
    pickle(latin(']('), ...keys.map(text), latin('e')),
  ]
  for (const part of parts) writeSync(file, part)
  for (const { rows, columns, bytes } of matrices) {
    const count = Buffer.alloc(8)
    count.writeBigUInt64LE(BigInt(rows * columns))
    writeSync(file, count)
    writeSync(file, bytes)
  }
  closeSync(file)
}
