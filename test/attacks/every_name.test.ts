/**
 * Calls every public function, and every method and setter of every object that the library gives out, with wrong arguments.
 * The calls are made from the list of public names, so a new name is covered without a change here. The outcome is a
 * TileworkError or a success. test/public_arguments.test.ts goes deeper, by a table.
 */
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import * as tilework from '../../lib/index.js'
import {
  asTensor,
  open,
  parseLayout,
  planReorder,
  serialize,
  sparseFromDense,
  stringTensor,
  TileworkError,
  tensor,
} from '../../lib/index.js'
import * as layoutEntry from '../../lib/layout.js'
import * as onnxEntry from '../../lib/onnx.js'
import * as tmfileEntry from '../../lib/tmfile.js'
import { smallModel } from '../formats/tmfile/tmfile_bytes.js'
import { addModel } from '../models/onnx/small_model.js'
import { NONSENSE } from '../tensor/nonsense.js'

const [threads, budget] = [tilework.threads(), tilework.memoryBudget()]
afterAll(() => {
  tilework.setThreads(threads)
  tilework.setMemoryBudget(budget)
})

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function cyclicObject(): object {
  const made: Record<string, unknown> = {}
  made.self = made
  return made
}

/** New ones for each call. No string is a name of a file. */
const WRONG_VALUES: readonly (() => unknown)[] = [
  ...NONSENSE,
  () => revoked({}),
  () => revoked([]),
  () => revoked(() => 1),
  () => revoked(new Uint8Array(4)),
  cyclicObject,
  () => new Proxy(() => 1, {}),
]

const small = () => tensor([1, 2, 3, 4], { dtype: 'float32', shape: [2, 2], name: 'small' })
const bytes = await serialize(small())
const onnxBytes = await serialize(addModel())
const model = () => onnxEntry.OnnxModel.create()
const read = async () => (await open(onnxBytes)).onnx!

/** One object of each class that callers can get. */
const OBJECTS: Readonly<Record<string, () => unknown>> = {
  DenseTensor: small,
  SparseTensor: () => sparseFromDense(small()),
  StringTensor: () => stringTensor(['a']),
  'DenseTensor of a view': () => asTensor(new Uint8Array(4)),
  'DenseTensor of a reorder': () => tilework.reorder(small(), 'row_major'),
  OpenFile: () => open(bytes),
  TensorList: async () => (await open(bytes)).tensors,
  'TensorList of an ONNX model': async () => (await open(onnxBytes)).tensors,
  Layout: () => parseLayout('bfyx'),
  ReorderPlan: () => planReorder({ dtype: 'int8', shape: [1, 2, 1, 1], from: 'bfyx', to: 'byxf' }),
  OnnxModel: model,
  'OnnxModel of a file': read,
  Graph: () => model().graph,
  'Graph of a file': async () => (await read()).graph,
  Node: async () => (await read()).graph.nodes[0],
  Value: async () => [...(await read()).graph.values()][0],
  TmfileModel: smallModel,
}

const ENTRIES = { ...tilework, ...layoutEntry, ...onnxEntry, ...tmfileEntry }
const isClass = (value: unknown) => /^class\b/.test(Function.prototype.toString.call(value))

type Call = (...args: unknown[]) => unknown

/** Functions, and static methods of classes, by name. Constructors are no public way to an object. */
function publicFunctions(): [string, Call][] {
  return Object.entries(ENTRIES).flatMap(([name, value]): [string, Call][] => {
    if (typeof value !== 'function') return []
    if (!isClass(value)) return [[name, value as Call]]
    return Object.getOwnPropertyNames(value).flatMap((key): [string, Call][] => {
      const own = (value as unknown as Record<string, unknown>)[key]
      const isMethod = typeof own === 'function' && key !== 'prototype' && isPublic(key)
      if (INTERNAL.has(`${name}.${key}`)) return []
      return isMethod ? [[`${name}.${key}`, (...args) => (own as Call).apply(value, args)]] : []
    })
  })
}

/** The public types, as text. Methods that they lack are for the library itself. */
const API = ['index', 'layout', 'onnx', 'tmfile']
  .map((name) => readFileSync(`etc/api/${name}.api.md`, 'utf8'))
  .join('')
const isPublic = (name: string) => new RegExp(`\\b${name}\\??[(:<]`).test(API)

/** Has the name of a public method and is none: the type of `Graph` lacks it. */
const INTERNAL: ReadonlySet<string> = new Set(['Graph.of'])

/** The keys of an object and of its classes. */
function keysOf(object: object): Map<string, PropertyDescriptor> {
  const keys = new Map<string, PropertyDescriptor>()
  for (
    let at: object | null = object;
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (key !== 'constructor' && isPublic(key) && !keys.has(key)) keys.set(key, descriptor)
    }
  }
  return keys
}

/** Waits for what a call returned, also where it returned an iterator. */
async function settle(made: unknown): Promise<void> {
  const result = await made
  const isIterator = typeof (result as { next?: unknown } | undefined)?.next === 'function'
  if (isIterator && Symbol.iterator in (result as object)) for (const _ of result as Iterable<unknown>) break
}

async function fault(call: () => unknown): Promise<string | undefined> {
  try {
    await settle(call())
    return undefined
  } catch (error) {
    if (error instanceof TileworkError) return undefined
    return error instanceof Error ? `${error.stack}` : `threw ${typeof error}`
  }
}

const MAX_ARGUMENTS = 3

/** Every wrong value at every position. The others are absent, or the same value. */
function* argumentLists(): Generator<readonly [string, unknown[]]> {
  yield ['no argument', []]
  for (const [value, make] of WRONG_VALUES.entries()) {
    for (let at = 0; at < MAX_ARGUMENTS; at++) {
      const alone = new Array<unknown>(at).fill(undefined)
      yield [`value ${value} at ${at}`, [...alone, make()]]
      // At the first position that is the same list.
      if (at > 0) yield [`value ${value} ${at + 1} times`, Array.from({ length: at + 1 }, make)]
    }
  }
}

async function faultsOf(call: Call): Promise<string[]> {
  const faults: string[] = []
  for (const [what, args] of argumentLists()) {
    const found = await fault(() => call(...args))
    if (found !== undefined) faults.push(`${what}: ${found}`)
  }
  return faults
}

describe('functions', () => {
  it.each(publicFunctions())('%s', { timeout: 120_000 }, async (_, call) => {
    expect(await faultsOf(call)).toEqual([])
  })
})

describe.each(Object.entries(OBJECTS))('%s', (_, make) => {
  it('has methods and setters that throw nothing else', { timeout: 300_000 }, async () => {
    const keys = keysOf((await make()) as object)
    const faults: string[] = []
    for (const [key, { value, set }] of keys) {
      if (typeof value !== 'function' && set === undefined) continue
      const found = await faultsOf(async (...args) => {
        const object = (await make()) as Record<string, unknown>
        if (typeof value === 'function') return (object[key] as Call)(...args)
        object[key] = args[0]
        return undefined
      })
      faults.push(...found.map((text) => `${key}: ${text}`))
    }
    expect(faults).toEqual([])
  })
})

it('save refuses a revoked Proxy as its target', async () => {
  const target = revoked({}) as never
  expect(await fault(() => tilework.save(target, [small()]))).toBe(undefined)
  await expect(tilework.save(target, [small()], { format: 'btf' })).rejects.toThrow(TileworkError)
})
