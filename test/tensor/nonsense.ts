/** Invalid and partly invalid values. New ones for each call, because some calls consume them. */

/** Throws on every access. */
function hostileProxy(target: object): object {
  const fail = (): never => {
    throw new Error('touched')
  }
  return new Proxy(target, { get: fail, has: fail, ownKeys: fail, getOwnPropertyDescriptor: fail })
}

function revokedProxy(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function transferred<T extends ArrayBufferView>(view: T): T {
  structuredClone(view, { transfer: [view.buffer as ArrayBuffer] })
  return view
}

function cyclicArray(): unknown[] {
  const array: unknown[] = []
  array.push(array)
  return array
}

/** Arrays that contain the next one twice at every depth: few objects, 2^depth values. */
export function sharedRows(depth: number): unknown {
  let row: unknown = 1
  for (let i = 0; i < depth; i++) row = [row, row]
  return row
}

const nameless = Object.create(null) as object

/** Values that an incorrect program may pass. */
export const NONSENSE: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => true,
  () => 0,
  () => -1,
  () => 1.5,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => 2 ** 53,
  () => 5n,
  () => -(2n ** 70n),
  () => '',
  () => 'x',
  () => 'float32',
  () => 'row_major',
  () => 'b_fs_yx_fsv16',
  () => Symbol('s'),
  () => () => 1,
  () => class Made {},
  () => ({}),
  () => nameless,
  () => ({ toString: () => Object.create(null) }),
  () => [],
  () => [nameless],
  () => [Symbol('in an array')],
  () => [null, undefined],
  () => [[1, 2], [3]],
  () => [1.5, -1],
  () => [2 ** 52, 2 ** 52],
  () => new Array(3),
  () => cyclicArray(),
  () => new Date(Number.NaN),
  () => new Map([[1, 2]]),
  () => new Uint8Array(3),
  () => new Float64Array(0),
  () => new DataView(new ArrayBuffer(4)),
  () => new ArrayBuffer(8),
  () => new SharedArrayBuffer(8),
  () => transferred(new Float32Array(2)),
  () => transferred(new DataView(new ArrayBuffer(2))),
  () => new Proxy(new Float32Array(2), {}),
  () => new Proxy([1, 2], {}),
  () => ({ kind: 'dense' }),
  () => ({ kind: 'dense', storage: null }),
  () => ({ kind: 'dense', storage: {}, dtype: 'int8', shape: [1], name: '', bytes: 1 }),
  () => ({ kind: 'sparse', dtype: 'int8', shape: [1] }),
  () => ({ kind: nameless, storage: nameless }),
  () => ({ dims: null, type: 'int8', data: null }),
  () => ({ dims: [2], type: 'int8', data: 'ab' }),
  () => ({ dims: [2], type: Symbol('t'), data: new Uint8Array(2) }),
  () => ({ dtype: 'int8', shape: 'x', bytes: () => null }),
  () => ({ dtype: 'int8', shape: [2], bytes: () => Promise.reject(null) }),
  () => ({
    dtype: 'int8',
    shape: [2],
    bytes: () => {
      throw Symbol('thrown')
    },
    bytesSync: () => 5,
  }),
  () => ({ dtype: 'int8', shape: [2], data: () => Promise.reject(undefined), dataSync: () => null }),
  () => ({ dtype: 'int8', shape: [2], name: nameless }),
  () => ({ dtype: nameless, shape: nameless, name: Symbol('n') }),
  () => ({ tensors: Number.NaN, headerBytes: '5' }),
  () => ({ start: nameless, end: Symbol('end') }),
  () => ({ lower: nameless, upper: [Symbol('u')] }),
]

/** All of them at once. */
export function nonsense(): unknown[] {
  return NONSENSE.map((make) => make())
}

/** Values that only an attacker passes: objects that throw on access or are endless as text. */
export function hostileValues(): unknown[] {
  return [
    sharedRows(300),
    {
      get dtype(): never {
        throw new TypeError('thrown by a getter')
      },
      get shape(): never {
        throw null
      },
    },
    hostileProxy({}),
    hostileProxy([]),
    revokedProxy({}),
    revokedProxy([]),
  ]
}
