/**
 * The functions of the addon: lifetimes of mappings, jobs and outputs, worker threads and process exit. The results of
 * plans are tested in C++ and in test/pipeline.
 */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { native } from '../../lib/native/addon.js'
import type { NativePlanDescription, NativeSide } from '../../lib/native/types.js'
import { ADDON } from './run_script.js'

const GIB = 2 ** 30

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-addon-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function rowMajor(shape: readonly number[], order = shape.map((_, axis) => axis)): NativeSide {
  const digits = order.map((axis) => ({ axes: [axis], radix: shape[axis]!, weight: 1 }))
  return {
    lower: shape.map(() => 0),
    upper: shape.map(() => 0),
    elements: shape.reduce((product, extent) => product * extent, 1),
    pieces: [{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits }],
  }
}

function transpose(rows: number, columns: number, elementBits = 8): NativePlanDescription {
  const shape = [rows, columns]
  return { elementBits, shape, from: rowMajor(shape), to: rowMajor(shape, [1, 0]) }
}

function openMapped(path: string) {
  return native().openInput(path, { mapped: true, guard: false })
}

function file(name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

function counted(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = i * 7 + (i >> 8)
  return bytes
}

function transposed(source: Uint8Array, rows: number, columns: number): Uint8Array {
  const bytes = new Uint8Array(source.length)
  for (let row = 0, i = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) bytes[column * rows + row] = source[i++]!
  }
  return bytes
}

/** Runs a script in a new process; `addon` and `folder` are defined in it. */
function runScript(script: string, flags: string[] = []) {
  const head = `const addon = require(${JSON.stringify(ADDON)}); const folder = ${JSON.stringify(folder)};
    const transpose = (rows, columns) => addon.planReorder(JSON.parse(${JSON.stringify(
      JSON.stringify(transpose(1, 1)),
    )}, (key, value) => key === 'shape' ? [rows, columns] : key === 'elements' ? rows * columns :
      key === 'digits' ? value.map((digit) => ({ ...digit, radix: digit.axes[0] === 0 ? rows : columns })) : value));`
  return spawnSync(process.execPath, [...flags, '-e', head + script], { encoding: 'utf8' })
}

describe('plans', () => {
  test('give the same bytes on the main thread and on others', async () => {
    const [rows, columns] = [1031, 977]
    const plan = native().planReorder(transpose(rows, columns))
    const source = counted(plan.sourceBytes)
    const expected = transposed(source, rows, columns)
    const sync = new Uint8Array(plan.destinationBytes)
    plan.runSync(source, sync, 0, sync.length)
    expect(Buffer.compare(sync, expected)).toBe(0)
    const before = native().threads()
    for (const threads of [1, 2, 3, 8]) {
      native().setThreads(threads)
      expect(native().threads()).toBe(threads)
      const result = new Uint8Array(plan.destinationBytes)
      await plan.run(source, result, 0, result.length)
      expect(Buffer.compare(result, expected)).toBe(0)
      plan.runSync(source, result.fill(0))
      expect(Buffer.compare(result, expected)).toBe(0)
      const part = new Uint8Array(100_000)
      await plan.run(source, part, 1234, 101_234)
      expect(Buffer.compare(part, expected.subarray(1234, 101_234))).toBe(0)
    }
    native().setThreads(before)
  })

  test('accept shared memory and unaligned addresses', async () => {
    const plan = native().planReorder(transpose(33, 65, 32))
    const source = new Uint8Array(new SharedArrayBuffer(plan.sourceBytes + 1)).subarray(1)
    source.set(counted(plan.sourceBytes))
    const result = new Uint8Array(new SharedArrayBuffer(plan.sourceBytes + 3)).subarray(3)
    await plan.run(source, result, 0, result.length)
    const words = (bytes: Uint8Array) => new Uint32Array(Uint8Array.from(bytes).buffer)
    expect(words(result)[1]).toBe(words(source)[65])
  })

  test('stop when the cancel flag is set', async () => {
    // 4-bit elements take the longest.
    const plan = native().planReorder(transpose(6000, 6000, 4))
    const cancel = new Int32Array(new SharedArrayBuffer(4))
    // Set before the run: a kernel may finish before the next line of this thread.
    cancel[0] = 1
    const run = plan.run(
      counted(plan.sourceBytes),
      new Uint8Array(plan.sourceBytes),
      0,
      plan.sourceBytes,
      cancel,
    )
    await expect(run).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    cancel[0] = 0
    await plan.run(counted(plan.sourceBytes), new Uint8Array(plan.sourceBytes), 0, plan.sourceBytes, cancel)
  })

  test('reject wrong buffers and ranges', () => {
    const plan = native().planReorder(transpose(4, 8, 32))
    const bytes = (size: number) => new Uint8Array(size)
    const refused = (...parameters: unknown[]) => {
      const run = plan.runSync as (...all: unknown[]) => void
      expect(() => run.apply(plan, parameters)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    }
    refused(bytes(127), bytes(128), 0, 128)
    refused(bytes(128), bytes(127), 0, 128)
    refused(bytes(128), bytes(3), 0, 3)
    refused(bytes(128), bytes(8), 124, 132)
    refused(bytes(128), bytes(128), -1, 127)
    refused(bytes(128), bytes(128), 0.5, 128)
    refused(bytes(128), bytes(128), Number.NaN, 128)
    refused(new Float32Array(32), bytes(128), 0, 128)
    refused('source', null, 0, 128)
    refused()
    const shared = bytes(192)
    refused(shared.subarray(0, 128), shared.subarray(64), 0, 128)
    expect(() => (plan.runSync as () => void).call({})).toThrow(TypeError)
    const Plan = plan.constructor as new () => unknown
    expect(() => new Plan()).toThrow('planReorder')
  })

  test('reject malformed descriptions', () => {
    const { planReorder } = native() as { planReorder: (value: unknown) => unknown }
    const good = transpose(3, 5)
    const bad: unknown[] = [
      undefined,
      null,
      1,
      'x',
      {},
      [],
      { ...good, elementBits: 12 },
      { ...good, shape: 'ab' },
    ]
    bad.push({ ...good, shape: [3] }, { ...good, shape: [3, -5] }, { ...good, shape: [3, Number.NaN] })
    bad.push({ ...good, shape: new Array(2000).fill(1) }, { ...good, shape: [3, 2 ** 60] })
    bad.push(
      { ...good, from: { ...good.from, pieces: [{}] } },
      { ...good, from: { ...good.from, elements: 16 } },
    )
    bad.push({ ...good, to: { ...good.to, pieces: [{ ...good.to.pieces[0], digits: [null] }] } })
    for (const description of bad) {
      expect(() => planReorder(description)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^ERR_(ARGUMENT|OVERFLOW)$/) }),
      )
    }
    const thrower = {
      get shape() {
        throw new RangeError('mine')
      },
    }
    expect(() =>
      planReorder({ ...good, ...{ elementBits: 8 }, __proto__: thrower, shape: undefined }),
    ).toThrow()
    expect(() =>
      planReorder(Object.defineProperty({ elementBits: 8 }, 'shape', { get: () => thrower.shape })),
    ).toThrow('mine')
  })
})

describe('mapped files', () => {
  const allowed = process.env.TILEWORK_NO_EXTERNAL_BUFFERS !== '1'
  beforeEach(() => native().setExternalBuffers(true))
  afterEach(() => native().setExternalBuffers(allowed))

  test('stay mapped while a view or a job uses them', async () => {
    const source = counted(1000 * 1000)
    const mapped = openMapped(file('life', source))
    expect(native().liveMappings()).toBeGreaterThan(0)
    const view = mapped.view(0, mapped.byteLength)
    const plan = native().planReorder(transpose(1000, 1000))
    const result = new Uint8Array(plan.destinationBytes)
    const run = plan.runFile(mapped, 0, result, 0, result.length)
    mapped.close(false)
    mapped.close(false)
    expect(() => mapped.view(0, 1)).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
    expect(Buffer.compare(view, source)).toBe(0)
    await run
    expect(Buffer.compare(result, transposed(source, 1000, 1000))).toBe(0)
    expect(native().liveMappings()).toBeGreaterThan(0)
    expect(view[1]).toBe(7)
  })

  test('a revoked view is detached at once, and a running job on it still succeeds', async () => {
    const source = counted(2000 * 2000)
    const mapped = openMapped(file('revoked', source))
    const view = mapped.view(0, mapped.byteLength)
    const plan = native().planReorder(transpose(2000, 2000))
    const result = new Uint8Array(plan.destinationBytes)
    const run = plan.run(view, result, 0, result.length)
    mapped.close(true)
    expect(view.length).toBe(0)
    await run
    expect(Buffer.compare(result, transposed(source, 2000, 2000))).toBe(0)
  })

  test('revoking a view frees its memory without a garbage collection', () => {
    const script = `const fs = require('fs'); addon.setExternalBuffers(true); fs.writeFileSync(folder + '/freed', Buffer.alloc(1 << 20));
      const mapped = addon.openInput(folder + '/freed', { mapped: true, guard: false });
      const view = mapped.view(0, 1 << 20), plan = transpose(1024, 1024), target = new Uint8Array(1 << 20);
      plan.run(view, target, 0, 1 << 20).then(() => {
        console.log(addon.liveMappings()); mapped.close(true);
        setTimeout(() => console.log(addon.liveMappings(), view.length), 20) })`
    expect(runScript(script)).toMatchObject({ status: 0, stdout: '1\n0 0\n', stderr: '' })
  })

  test('a view is a copy where the runtime forbids external buffers', () => {
    const source = counted(100_000)
    const mapped = openMapped(file('copied', source))
    native().setExternalBuffers(false)
    const copy = mapped.view(10, 90_000)
    mapped.close(true)
    expect(Buffer.compare(copy, source.subarray(10, 90_000))).toBe(0)
  })

  test('give views of ranges, also small ones', () => {
    const mapped = openMapped(file('ranges', counted(10)))
    expect([...mapped.view(3, 5)]).toEqual([...counted(10).subarray(3, 5)])
    expect(mapped.view(10, 10).length).toBe(0)
    for (const [start, end] of [
      [0, 11],
      [5, 4],
      [11, 11],
    ] as const) {
      expect(() => mapped.view(start, end)).toThrow(expect.objectContaining({ code: 'ERR_RANGE' }))
    }
    expect(() => mapped.view(-1, 4)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    const empty = openMapped(file('empty', new Uint8Array()))
    expect(empty.byteLength).toBe(0)
    expect(empty.view(0, 0).length).toBe(0)
    const none = native().planReorder(transpose(0, 7))
    none.runFileSync(empty, 0, new Uint8Array(), 0, 0)
  })

  test('writing into a view does not change the file', () => {
    const path = file('stores', counted(10_000))
    const view = openMapped(path).view(0, 10_000)
    view.fill(0)
    expect(readFileSync(path)[1]).toBe(7)
  })

  test('views and runs detect a changed file', async () => {
    const path = file('changed', counted(100 * 100))
    const mapped = openMapped(path)
    const view = mapped.view(0, mapped.byteLength)
    const plan = native().planReorder(transpose(100, 100))
    const result = new Uint8Array(plan.destinationBytes)
    utimesSync(path, 1, 1)
    const changed = expect.objectContaining({ code: 'ERR_FILE_CHANGED' })
    expect(() => mapped.verifyUnchanged()).toThrow(changed)
    expect(() => mapped.view(0, 1)).toThrow(changed)
    expect(() => plan.runFile(mapped, 0, result, 0, result.length)).toThrow(changed)
    expect(() => plan.runSync(view, result, 0, result.length)).toThrow(changed)
    await expect(plan.run(view, result, 0, result.length)).rejects.toEqual(changed)
    // Windows shortens no file that is mapped.
    if (process.platform === 'win32') return
    truncateSync(path, 0)
    expect(() => mapped.view(0, 1)).toThrow(changed)
  })

  test('files above 4 GiB are mapped; a view is refused only above the limit of the Node version', async () => {
    const path = file('large', counted(4))
    truncateSync(path, 5 * GIB)
    const mapped = openMapped(path)
    expect(mapped.byteLength).toBe(5 * GIB)
    expect(mapped.view(5 * GIB - 5000, 5 * GIB).length).toBe(5000)
    if (Number(process.versions.node.split('.')[0]) < 22) {
      expect(() => mapped.view(0, 5 * GIB)).toThrow(expect.objectContaining({ code: 'ERR_VIEW_TOO_LARGE' }))
    } else {
      expect(mapped.view(0, 5 * GIB).length).toBe(5 * GIB)
    }
    const plan = native().planReorder(transpose(64, 64))
    const result = new Uint8Array(plan.destinationBytes).fill(9)
    await plan.runFile(mapped, 5 * GIB - 4096, result, 0, 4096)
    expect(result.every((byte) => byte === 0)).toBe(true)
    expect(() => plan.runFileSync(mapped, 5 * GIB - 4095, result, 0, 4096)).toThrow(
      expect.objectContaining({ code: 'ERR_RANGE' }),
    )
    mapped.close(true)
    // Windows deletes no file that is mapped, and the views are let go in a later turn of the event loop.
    await rm(path, { maxRetries: 10 })
  })

  test('system errors have a code, a system call and a path', () => {
    const path = join(folder, 'missing')
    expect(() => openMapped(path)).toThrow(expect.objectContaining({ code: 'ENOENT', syscall: 'open', path }))
    expect(() => openMapped(folder)).toThrow(expect.objectContaining({ code: 'EISDIR' }))
    expect(() => openMapped('a\0b')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })

  test('collected views release the mapping', () => {
    const script = `const fs = require('fs'); fs.writeFileSync(folder + '/gc', Buffer.alloc(1 << 20));
      const mapped = addon.openInput(folder + '/gc', { mapped: true, guard: false });
      for (let i = 0; i < 5000; i++) mapped.view(0, 1 << 20);
      mapped.close(false);
      const wait = (n) => { global.gc(); if (addon.liveMappings() === 0) return console.log('gone');
        if (n > 0) setTimeout(wait, 5, n - 1) };
      wait(500)`
    expect(runScript(script, ['--expose-gc'])).toMatchObject({ status: 0, stdout: 'gone\n', stderr: '' })
  })
})

describe('outputs', () => {
  test('commit writes the result of all writes and copies', async () => {
    const source = counted(200_000)
    const mapped = openMapped(file('parts', source))
    const path = join(folder, 'whole')
    const output = native().createOutput(path, 300_000)
    const writes = [
      output.write(source.subarray(0, 100_000), 0),
      output.copyFrom(mapped, 0, 200_000, 100_000),
    ]
    const commit = output.commit()
    await Promise.all([...writes, commit])
    expect(Buffer.compare(readFileSync(path), Buffer.concat([source.subarray(0, 100_000), source]))).toBe(0)
    expect(() => output.write(source, 0)).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
    output.abort()
    expect(readdirSync(folder).filter((name) => name.endsWith('.tilework-tmp'))).toEqual([])
  })

  test('a failed write keeps the old file', async () => {
    const path = file('kept', counted(10))
    const output = native().createOutput(path, 10)
    await expect(output.write(counted(10), Number.MAX_SAFE_INTEGER - 20)).rejects.toMatchObject({
      code: expect.stringMatching(
        process.platform === 'win32' ? /^E(FBIG|INVAL|NOSPC|IO)$/ : /^E(FBIG|INVAL)$/,
      ),
    })
    await expect(output.commit()).rejects.toMatchObject({ code: 'ERR_IO' })
    expect(Buffer.compare(readFileSync(path), counted(10))).toBe(0)
    expect(readdirSync(folder).filter((name) => name.startsWith('.kept'))).toEqual([])
  })

  test('no temporary file outlives its process or its output object', () => {
    const strays = () => readdirSync(folder).filter((name) => name.endsWith('.tilework-tmp'))
    const create = `const output = addon.createOutput(folder + '/never', 1000);`
    expect(runScript(`${create} process.exit(0)`)).toMatchObject({ status: 0, stderr: '' })
    expect(strays()).toEqual([])
    expect(runScript(`${create} throw new Error('crash')`).status).toBe(1)
    expect(strays()).toEqual([])
    const forget = `(() => { ${create} })();
      const gone = () => !require('fs').readdirSync(folder).some((name) => name.endsWith('.tilework-tmp'));
      const wait = (n) => { global.gc(); if (gone()) return console.log('gone'); if (n > 0) setTimeout(wait, 5, n - 1) };
      setTimeout(wait, 5, 500)`
    expect(runScript(forget, ['--expose-gc']).stdout).toBe('gone\n')
  })
})

describe('environments that end', () => {
  const busy = `const size = 4000; const plan = transpose(size, size);
    const source = new Uint8Array(size * size), target = new Uint8Array(size * size);
    for (let i = 0; i < 50; i++) plan.run(source, target, 0, size * size).catch(() => {});`

  test('process.exit during jobs ends the process normally', () => {
    expect(runScript(`${busy} process.exit(7)`)).toMatchObject({ status: 7, stderr: '' })
    expect(runScript(`${busy} setTimeout(() => process.exit(7), 3)`)).toMatchObject({ status: 7, stderr: '' })
  })

  test('the process stays alive for running jobs only', () => {
    const script = `const plan = transpose(10, 10);
      plan.run(new Uint8Array(100), new Uint8Array(100), 0, 100).then(() => console.log('done'))`
    expect(runScript(script)).toMatchObject({ status: 0, stdout: 'done\n', stderr: '' })
    expect(runScript(`transpose(10, 10)`)).toMatchObject({ status: 0, stderr: '' })
  })

  test('workers may exit or be terminated during jobs', () => {
    const script = `const { Worker } = require('worker_threads');
      const body = \`const addon = require(${JSON.stringify(ADDON)}); const transpose = \${transpose};
        const view = addon.openInput(\${JSON.stringify(folder)} + '/w', { mapped: true, guard: false }).view(0, 1 << 20);
        const output = addon.createOutput(\${JSON.stringify(folder)} + '/never', 1000);
        output.write(view, 0).catch(() => {});
        ${busy} require('worker_threads').parentPort.postMessage('busy')\`;
      // Written before the workers start: a second worker that rewrote it would truncate the first one's mapping.
      require('fs').writeFileSync(${JSON.stringify(folder)} + '/w', Buffer.alloc(1 << 20));
      const start = (end) => new Promise((resolve) => {
        const worker = new Worker(body + end, { eval: true });
        worker.on('error', (error) => { throw error });
        worker.on('message', () => end === '' && worker.terminate());
        worker.on('exit', resolve) });
      (async () => { for (let i = 0; i < 5; i++) { await Promise.all([start(''), start(';process.exit()')]) }
        console.log(require('fs').readdirSync(folder).filter((name) => name.endsWith('.tilework-tmp')).length) })()`
    expect(runScript(script)).toMatchObject({ status: 0, stdout: '0\n', stderr: '' })
  })

  test('the process continues after the only worker that loaded the addon', async () => {
    const script = `const { Worker } = require('worker_threads');
      const body = 'const addon = require(${JSON.stringify(ADDON)}); addon.threads()';
      const once = () => new Promise((resolve) => new Worker(body, { eval: true }).on('exit', resolve));
      (async () => { for (let i = 0; i < 5; i++) await once(); console.log('well') })()`
    const result = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
    expect(result).toMatchObject({ status: 0, stdout: 'well\n', stderr: '' })
  })

  test('environments are independent', async () => {
    const body = `const addon = require(${JSON.stringify(ADDON)});
      require('worker_threads').parentPort.postMessage(addon.liveMappings())`
    const mapped = openMapped(file('mine', counted(10)))
    const worker = new Worker(body, { eval: true })
    const seen = await new Promise((resolve) => worker.once('message', resolve))
    await worker.terminate()
    expect(seen).toBe(0)
    mapped.close(false)
  })
})

describe('settings', () => {
  test('thread counts are validated; TILEWORK_THREADS sets the default', () => {
    const refused = expect.objectContaining({ code: expect.stringMatching(/^ERR_/) })
    for (const count of [0, -1, 1.5, 100_000, Number.NaN, '4']) {
      expect(() => native().setThreads(count as number)).toThrow(refused)
    }
    const counts = ['3', 'many', '0'].map((value) => {
      const env = { ...process.env, TILEWORK_THREADS: value }
      const script = `console.log(require(${JSON.stringify(ADDON)}).threads())`
      return Number(spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }).stdout)
    })
    expect(counts[0]).toBe(3)
    expect(counts[1]).toBeGreaterThanOrEqual(1)
    expect(counts[2]).toBe(counts[1])
  })

  test('the instruction set is reported', () => {
    expect(native().cpu().architecture).toBe(process.arch)
    expect(native().cpu().features.length).toBeGreaterThan(0)
  })

  const known =
    'sse4_2 avx f16c fma avx2 avx512f avx512dq avx512bw avx512vl avx512vbmi avx512_bf16 asimd'.split(' ')
  const systemNames: Record<string, string> = { sse4_2: 'sse4.2', avx512_bf16: 'avx512bf16', asimd: 'neon' }

  test.runIf(existsSync('/proc/cpuinfo'))('the features of the CPU are those that the system lists', () => {
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))![1]!.split(' ')
    const listed = known.filter((flag) => flags.includes(flag)).map((flag) => systemNames[flag] ?? flag)
    expect(native().cpu().features).toEqual(listed)
  })
})

test('ranges of blocks are refused where they do not fit', () => {
  const bytes = (count: number): Uint8Array => new Uint8Array(new Float32Array(count).buffer)
  const extend = (numbers: Uint8Array, first: number, row: number, block: number, min = 2, max = min): void =>
    native().extendBlockRanges(numbers, first, row, block, bytes(min), bytes(max))
  expect(() => extend(bytes(8), 0, 8, 4)).not.toThrow()
  expect(() => extend(bytes(0), 100, 8, 4)).not.toThrow()
  const refused = (message: string) => expect.objectContaining({ code: 'ERR_ARGUMENT', message })
  const none = (block: number) => refused(`'min' and 'max' have no entry for block ${block}.`)
  expect(() => extend(bytes(8), 1, 8, 4)).toThrow(none(2))
  expect(() => extend(bytes(8), 0, 8, 4, 2, 1)).toThrow(none(1))
  expect(() => extend(bytes(1), Number.MAX_SAFE_INTEGER, 1, 1)).toThrow(none(Number.MAX_SAFE_INTEGER))
  expect(() => extend(bytes(2), Number.MAX_SAFE_INTEGER, 1, 1)).toThrow(
    expect.objectContaining({ code: 'ERR_OVERFLOW' }),
  )
  for (const [row, block] of [
    [0, 4],
    [8, 0],
  ] as const) {
    expect(() => extend(bytes(8), 0, row, block)).toThrow(
      refused("'rowLength' and 'blockLength' must be at least 1."),
    )
  }
  const odd = refused("'numbers' must be the bytes of a Float32Array.")
  expect(() => extend(bytes(8).subarray(1, 5), 0, 8, 4)).toThrow(odd)
  expect(() => extend(new Uint8Array(7), 0, 8, 4)).toThrow(odd)
})

test('quantized blocks are refused where they do not fit', () => {
  const bytes = (count: number): Uint8Array => new Uint8Array(new Float32Array(count).buffer)
  const rule = { formula: 'matmulnbits', bits: 4, symmetric: false, halfScales: false } as const
  const matrix = { rows: 32, columns: 2, blockSize: 16, down: true }
  const target = { codes: new Uint8Array(32), scales: bytes(4), zeros: new Uint8Array(4) }
  const quantize = (change: { rule?: object; matrix?: object; target?: object }) => () =>
    native().quantizeBlocks(
      bytes(64),
      { ...rule, ...change.rule },
      { ...matrix, ...change.matrix },
      { ...target, ...change.target },
    )
  expect(quantize({})).not.toThrow()
  expect(quantize({ target: { blocks: 2, first: 0 } })).not.toThrow()
  expect(quantize({ rule: { symmetric: true }, target: { zeros: new Uint8Array(0) } })).not.toThrow()
  const refused = (message: string) => expect.objectContaining({ code: 'ERR_ARGUMENT', message })
  expect(quantize({ rule: { bits: 3 } })).toThrow(refused("'bits' must be 2, 4 or 8."))
  expect(quantize({ rule: { formula: 'x' } })).toThrow(
    refused("'formula' must be matmulnbits, dequantizelinear or gather."),
  )
  expect(quantize({ matrix: { rows: 31 } })).toThrow(refused("'numbers' must have rows * columns numbers."))
  expect(quantize({ matrix: { blockSize: 0 } })).toThrow(refused("'blockSize' must be at least 1."))
  expect(quantize({ target: { codes: new Uint8Array(31) } })).toThrow(
    refused("'codes' has 31 entries; 32 are needed."),
  )
  expect(quantize({ target: { blocks: 2, first: 1 } })).toThrow(
    refused("'first' leaves no room for the blocks of 'numbers'."),
  )
  expect(quantize({ matrix: { blockSize: 20 }, target: { blocks: 2, first: 0 } })).toThrow(
    refused("'blockSize' must be a multiple of 8."),
  )
})

test('codes of bitsandbytes are refused where they do not fit', () => {
  const bytes = (count: number): Uint8Array => new Uint8Array(new Float32Array(count).buffer)
  const quantize = (kind: string, blockSize: number, codes: number, magnitudes: number) => () =>
    native().quantizeBnb4(bytes(5), kind as 'nf4', blockSize, new Uint8Array(codes), bytes(magnitudes))
  expect(quantize('nf4', 2, 3, 3)).not.toThrow()
  for (const [kind, blockSize, codes, magnitudes] of [
    ['nf3', 2, 3, 3],
    ['nf4', 3, 3, 2],
    ['nf4', 0, 3, 3],
    ['fp4', 2, 2, 3],
    ['fp4', 2, 3, 2],
  ] as const) {
    expect(quantize(kind, blockSize, codes, magnitudes)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  }
})
