/** Output files of the addon: atomic replacement, released resources, sync, copies and errors. */
import { spawn } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { native } from '../../lib/native/addon.js'
import type { NativeInputFile } from '../../lib/native/types.js'
import { descriptorsIn, runScript, scriptHead } from './run_script.js'

const CONTENT = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 31) % 253)
const isWindows = process.platform === 'win32'
const code = (name: string) => expect.objectContaining({ code: name })

let root: string
let folder: string
let number = 0
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tilework-output-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))
beforeEach(() => {
  folder = join(root, String(number++))
  mkdirSync(folder)
})

function openInput(name: string, mapped: boolean, content: Uint8Array = CONTENT): NativeInputFile {
  writeFileSync(join(folder, name), content)
  return native().openInput(join(folder, name), { mapped, guard: false })
}

async function save(name: string, bytes: Uint8Array): Promise<void> {
  const output = native().createOutput(join(folder, name), bytes.length)
  await output.write(bytes, 0)
  await output.commit()
}

describe('a process that is killed', () => {
  test('leaves the old or the new file, and no stray file after the next save', async () => {
    const versions = ['a', 'b'].map((letter) => Buffer.alloc(3_000_000, letter))
    writeFileSync(join(folder, 'target'), versions[0]!)
    const script = `${scriptHead(folder)}
      const versions = ['a', 'b'].map((letter) => Buffer.alloc(3_000_000, letter));
      (async () => {
        for (let i = 0; ; i++) {
          const output = addon.createOutput(folder + '/target', 3_000_000);
          const bytes = versions[i % 2], parts = [];
          for (let at = 0; at < bytes.length; at += 300_000) {
            parts.push(output.write(bytes.subarray(at, at + 300_000), at));
          }
          await Promise.all(parts); await output.commit();
          if (i === 0) process.stdout.write('.');
        }
      })()`
    for (let round = 0; round < 12; round++) {
      const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
      await new Promise((resolve) => child.stdout.once('data', resolve))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 30))
      child.kill('SIGKILL')
      await new Promise((resolve) => child.once('exit', resolve))
      const content = readFileSync(join(folder, 'target'))
      expect(versions.some((version) => version.equals(content))).toBe(true)
      expect(readdirSync(folder).length).toBeLessThanOrEqual(2)
    }
    await save('target', CONTENT)
    expect(readdirSync(folder)).toEqual(['target'])
    expect(Buffer.compare(readFileSync(join(folder, 'target')), CONTENT)).toBe(0)
  })

  // On Windows a file that is marked for deletion has a name: test/programs/windows.mjs.
  test.skipIf(isWindows)('leaves nothing behind where the system supports unnamed files', async () => {
    const script = `const output = addon.createOutput(folder + '/target', 1000);
      output.write(Buffer.alloc(1000), 0).then(() => {
        console.log(fs.readdirSync(folder).length); process.kill(process.pid, 'SIGKILL') })`
    const { stdout, signal } = runScript(folder, script)
    expect(signal).toBe('SIGKILL')
    expect(readdirSync(folder).length).toBe(Number(stdout))
    await save('target', CONTENT)
    expect(readdirSync(folder)).toEqual(['target'])
  })
})

describe('released resources', () => {
  // Windows has no limit of descriptors.
  test.skipIf(isWindows)('concurrent saves that mostly fail keep few descriptors open', async () => {
    const script = `const limit = 200, count = 1500; let failed = 0, done = 0;
      const one = async (i) => {
        const output = addon.createOutput(folder + '/many' + i % 7, 100);
        try {
          await output.write(Buffer.alloc(100), i % 3 === 0 ? 0 : Number.MAX_SAFE_INTEGER - 200);
          await output.commit(); done++;
        } catch { failed++; output.abort() }
      };
      (async () => {
        const running = new Set();
        for (let i = 0; i < count; i++) {
          const job = one(i).finally(() => running.delete(job)); running.add(job);
          if (running.size >= limit) await Promise.race(running);
        }
        await Promise.all(running);
        console.log(done, failed, fs.readdirSync(folder).length) })()`
    const limited = join(folder, 'limited.sh')
    writeFileSync(limited, 'ulimit -n 300; exec "$@"')
    const child = spawn('sh', [limited, process.execPath, '-e', scriptHead(folder) + script])
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        output += text
      })
    }
    await new Promise((resolve) => child.once('close', resolve))
    expect(output).toBe('500 1000 8\n')
  })

  test('the descriptor, right after commit or after the last write of an aborted file', async () => {
    if (process.platform !== 'linux') return console.log('Descriptors are counted on Linux only.')
    const committed = native().createOutput(join(folder, 'committed'), 10)
    await committed.commit()
    expect(descriptorsIn(folder)).toBe(0)
    const aborted = native().createOutput(join(folder, 'aborted'), 10)
    expect(descriptorsIn(folder)).toBe(1)
    const writes = Array.from({ length: 10 }, (_, i) => aborted.write(CONTENT, i * 10))
    aborted.abort()
    const results = await Promise.allSettled(writes)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toEqual(code('ERR_CLOSED'))
    }
    expect(descriptorsIn(folder)).toBe(0)
    aborted.abort()
    expect(readdirSync(folder)).toEqual(['committed'])
  })

  test('arrays given to a finished output or to a rejected copy', () => {
    const script = `fs.writeFileSync(folder + '/source', 'abc');
      const file = addon.openInput(folder + '/source', { mapped: false, guard: false });
      let collected = 0; const registry = new FinalizationRegistry(() => collected++);
      const output = addon.createOutput(folder + '/out', 0);
      output.commit().then(() => {
        for (let i = 0; i < 500; i++) {
          const bytes = new Uint8Array(1000), cancel = new Int32Array(1);
          registry.register(bytes); registry.register(cancel);
          try { output.write(bytes, 0) } catch {}
          try { output.copyFrom(file, 0, 3, 0, cancel) } catch {}
        }
        const wait = (n) => { global.gc();
          if (collected > 900) return console.log('gone');
          if (n > 0) setTimeout(wait, 5, n - 1); else console.log(collected) };
        wait(200)
      })`
    expect(runScript(folder, script, ['--expose-gc'])).toMatchObject({ stdout: 'gone\n', stderr: '' })
  })
})

describe('sync', () => {
  test('waits for earlier writes, rejects writes while it is pending and allows later ones', async () => {
    const output = native().createOutput(join(folder, 'target'), 0)
    // The sync waits for a long write, so it is still pending when the next line runs.
    const slow = output.write(new Uint8Array(128 * 1024 * 1024), CONTENT.byteLength)
    const first = output.write(CONTENT.subarray(0, 100_000), 0)
    const synced = output.sync()
    expect(() => output.write(CONTENT, 0)).toThrow(code('ERR_CLOSED'))
    await Promise.all([slow, first, synced])
    expect(readdirSync(folder).filter((name) => name === 'target')).toEqual([])
    await output.write(CONTENT.subarray(100_000), 100_000)
    await Promise.all([output.sync(), output.sync(), output.commit()])
    const found = readFileSync(join(folder, 'target')).subarray(0, CONTENT.byteLength)
    expect(Buffer.compare(found, CONTENT)).toBe(0)
    expect(() => output.sync()).toThrow(code('ERR_CLOSED'))
  })

  test('fails after a failed write, and the file is not replaced', async () => {
    writeFileSync(join(folder, 'old'), 'old')
    const output = native().createOutput(join(folder, 'old'), 0)
    const written = output.write(CONTENT, Number.MAX_SAFE_INTEGER - 300_000)
    await Promise.all([
      expect(written).rejects.toMatchObject({ syscall: 'pwrite' }),
      expect(output.sync()).rejects.toEqual(code('ERR_IO')),
    ])
    expect(() => output.commit()).toThrow(code('ERR_CLOSED'))
    expect(readdirSync(folder)).toEqual(['old'])
    expect(readFileSync(join(folder, 'old'), 'utf8')).toBe('old')
  })
})

describe.each([
  ['mapped', true],
  ['not mapped', false],
] as const)('copies from a file that is %s', (_, mapped) => {
  test('combine with writes at other offsets', async () => {
    const source = openInput('source', mapped)
    const output = native().createOutput(join(folder, 'parts'), 0)
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        i % 2 === 0
          ? output.copyFrom(source, i * 5000, (i + 1) * 5000, i * 5000)
          : output.write(CONTENT.subarray(i * 5000, (i + 1) * 5000), i * 5000),
      ),
    )
    await output.commit()
    expect(Buffer.compare(readFileSync(join(folder, 'parts')), CONTENT)).toBe(0)
  })

  test('succeed when the source is closed during the copy', async () => {
    const source = openInput('source', mapped)
    const output = native().createOutput(join(folder, 'copy'), 0)
    const copies = Array.from({ length: 8 }, () => output.copyFrom(source, 0, CONTENT.length, 0))
    source.close(true)
    expect(() => output.copyFrom(source, 0, 1, 0)).toThrow(code('ERR_CLOSED'))
    await Promise.all(copies)
    await output.commit()
    expect(Buffer.compare(readFileSync(join(folder, 'copy')), CONTENT)).toBe(0)
  })

  test('stop when the cancel flag is set, and the file is not replaced', async () => {
    const source = openInput('source', mapped)
    writeFileSync(join(folder, 'old'), 'old')
    const output = native().createOutput(join(folder, 'old'), 0)
    const cancel = new Int32Array([1])
    await expect(output.copyFrom(source, 0, 100, 0, cancel)).rejects.toEqual(code('ERR_ABORTED'))
    await expect(output.commit()).rejects.toEqual(code('ERR_IO'))
    expect(readFileSync(join(folder, 'old'), 'utf8')).toBe('old')
  })

  // Windows shortens no file that is mapped.
  test.skipIf(isWindows && mapped)('detect a changed source', async () => {
    const source = openInput('source', mapped)
    truncateSync(join(folder, 'source'), 10)
    const output = native().createOutput(join(folder, 'copy'), 0)
    await expect(output.copyFrom(source, 0, 10, 0)).rejects.toEqual(code('ERR_FILE_CHANGED'))
    output.abort()
  })

  test('reject ranges outside the source, other files and cancel flags in resizable memory', () => {
    const source = openInput('source', mapped)
    const output = native().createOutput(join(folder, 'copy'), 0)
    expect(() => output.copyFrom(source, 0, CONTENT.length + 1, 0)).toThrow(code('ERR_RANGE'))
    expect(() => output.copyFrom(source, 5, 4, 0)).toThrow(code('ERR_RANGE'))
    for (const other of [output, {}, null, 'source']) {
      expect(() => output.copyFrom(other as never, 0, 0, 0)).toThrow(code('ERR_ARGUMENT'))
    }
    for (const cancel of badCancelFlags()) {
      expect(() => output.copyFrom(source, 0, 1, 0, cancel as never)).toThrow(code('ERR_ARGUMENT'))
    }
    output.abort()
  })
})

describe('errors', () => {
  test('name the requested file, never the temporary one', async () => {
    const path = join(folder, 'target')
    const output = native().createOutput(path, 0)
    const error = await output.write(CONTENT, Number.MAX_SAFE_INTEGER - 300_000).catch((thrown) => thrown)
    expect(error).toMatchObject({ syscall: 'pwrite', path, message: expect.stringContaining(path) })
    expect(error.message).not.toContain('tilework-tmp')
    await expect(output.commit()).rejects.toMatchObject({ path })
    expect(() => native().createOutput(join(folder, 'no', 'target'), 0)).toThrow(
      expect.objectContaining({ code: 'ENOENT', path: join(folder, 'no', 'target') }),
    )
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('a cancel flag of a plan', () => {
  test('is rejected where its memory could be detached or resized', () => {
    const side = {
      lower: [0],
      upper: [0],
      elements: 8,
      pieces: [{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits: [{ axes: [0], radix: 8, weight: 1 }] }],
    }
    const plan = native().planReorder({ elementBits: 8, shape: [8], from: side, to: side })
    for (const cancel of badCancelFlags()) {
      const run = () => plan.run(new Uint8Array(8), new Uint8Array(8), 0, 8, cancel as never)
      expect(run).toThrow(code('ERR_ARGUMENT'))
    }
  })
})

/** Flags in detachable or resizable memory or without memory; some misreport their own properties. */
function badCancelFlags(): unknown[] {
  const Resizable = ArrayBuffer as unknown as new (size: number, options: object) => ArrayBuffer
  const resizable = new Resizable(4, { maxByteLength: 8 })
  const lying = new Resizable(4, { maxByteLength: 8 })
  Object.defineProperty(lying, 'resizable', { value: false })
  const detached = new Int32Array(1)
  structuredClone(detached, { transfer: [detached.buffer] })
  return [
    new Int32Array(resizable),
    new Int32Array(lying),
    detached,
    new Int32Array(0),
    new Uint32Array(1),
    [0],
    null,
  ]
}
