/** Input files of the addon: read by descriptor, mapped, and mapped with a guard. */
import { mkdirSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { native } from '../../lib/native/addon.js'
import type { NativeInputFile } from '../../lib/native/types.js'
import { descriptorsOn, runScript } from './run_script.js'

const MEBIBYTE = 2 ** 20
const CONTENT = Uint8Array.from({ length: MEBIBYTE }, (_, i) => (i * 31) % 253)
const code = (name: string) => expect.objectContaining({ code: name })

/** Windows shortens no file that is mapped, and a guarded one is read there. */
const isWindows = process.platform === 'win32'

let root: string
let folder: string
let number = 0
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tilework-input-'))
})
beforeEach(() => {
  folder = join(root, String(number++))
  mkdirSync(folder)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

function open(name: string, mapped: boolean, content: Uint8Array = CONTENT): NativeInputFile {
  writeFileSync(join(folder, name), content)
  return native().openInput(join(folder, name), { mapped, guard: false })
}

describe.each([
  ['mapped', true],
  ['not mapped', false],
] as const)('a file that is %s', (_, mapped) => {
  test('fills the given memory', async () => {
    const file = open('filled', mapped)
    expect(file).toMatchObject({ byteLength: MEBIBYTE, isMapped: mapped })
    const whole = new Uint8Array(MEBIBYTE)
    await file.read(0, whole)
    expect(Buffer.compare(whole, CONTENT)).toBe(0)
    const shared = new Uint8Array(new SharedArrayBuffer(1003)).subarray(3)
    file.readSync(777, shared)
    expect(Buffer.compare(shared, CONTENT.subarray(777, 1777))).toBe(0)
    await file.read(MEBIBYTE, new Uint8Array(0))
    file.readSync(MEBIBYTE, new Uint8Array(0))
    const many = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const part = new Uint8Array(5000)
        await file.read(i * 9999, part)
        return Buffer.compare(part, CONTENT.subarray(i * 9999, i * 9999 + 5000))
      }),
    )
    expect(many.every((order) => order === 0)).toBe(true)
    file.close(false)
  })

  test('rejects ranges outside the file and invalid targets', () => {
    const file = open('ranges', mapped)
    for (const [start, length] of [
      [1, MEBIBYTE],
      [MEBIBYTE + 1, 0],
      [Number.MAX_SAFE_INTEGER - 1, 0],
    ] as const) {
      expect(() => file.read(start, new Uint8Array(length))).toThrow(code('ERR_RANGE'))
      expect(() => file.readSync(start, new Uint8Array(length))).toThrow(code('ERR_RANGE'))
    }
    expect(() => file.readSync(Number.MAX_SAFE_INTEGER, new Uint8Array(2))).toThrow(code('ERR_OVERFLOW'))
    expect(() => file.readSync(-1, new Uint8Array(2))).toThrow(code('ERR_ARGUMENT'))
    expect(() => file.readSync(0, new Float32Array(2) as never)).toThrow(code('ERR_ARGUMENT'))
    expect(() => file.read(0, undefined as never)).toThrow(code('ERR_ARGUMENT'))
    file.close(false)
  })

  test('refuses the view of a mapped file as target', () => {
    const file = open('onto', mapped)
    const view = open('view', true).view(0, 10_000)
    expect(() => file.read(0, view)).toThrow(code('ERR_ARGUMENT'))
    expect(() => file.readSync(0, view)).toThrow(code('ERR_ARGUMENT'))
    file.close(false)
  })

  test.skipIf(isWindows && mapped)('detects a change during and after a read', async () => {
    const cut = open('cut', mapped)
    const reading = cut.read(0, new Uint8Array(MEBIBYTE))
    truncateSync(join(folder, 'cut'), 100)
    await reading.catch((error) => expect(error).toEqual(code('ERR_FILE_CHANGED')))
    await expect(cut.read(0, new Uint8Array(MEBIBYTE))).rejects.toEqual(code('ERR_FILE_CHANGED'))
    await expect(cut.read(0, new Uint8Array(10))).rejects.toEqual(code('ERR_FILE_CHANGED'))
    expect(() => cut.readSync(50_000, new Uint8Array(10))).toThrow(code('ERR_FILE_CHANGED'))
    const touched = open('touched', mapped)
    utimesSync(join(folder, 'touched'), 1, 1)
    expect(() => touched.readSync(0, new Uint8Array(10))).toThrow(code('ERR_FILE_CHANGED'))
    expect(() => touched.verifyUnchanged()).toThrow(code('ERR_FILE_CHANGED'))
  })

  test('finishes pending reads after close, then closes its descriptor', async () => {
    const file = open('closing', mapped)
    const parts = Array.from({ length: 20 }, () => new Uint8Array(MEBIBYTE))
    const reads = parts.map((part) => file.read(0, part))
    if (process.platform === 'linux') expect(descriptorsOn(join(folder, 'closing'))).toBe(1)
    file.close(true)
    file.close(true)
    expect(() => file.read(0, new Uint8Array(1))).toThrow(code('ERR_CLOSED'))
    expect(() => file.readSync(0, new Uint8Array(1))).toThrow(code('ERR_CLOSED'))
    await Promise.all(reads)
    expect(parts.every((part) => Buffer.compare(part, CONTENT) === 0)).toBe(true)
    expect(descriptorsOn(join(folder, 'closing'))).toBe(0)
  })
})

test('a file that is not mapped has no views and no mapping', () => {
  const before = native().liveMappings()
  const file = open('viewless', false)
  expect(() => file.view(0, 10)).toThrow(code('ERR_ARGUMENT'))
  expect(native().liveMappings()).toBe(before)
  file.close(false)
})

test.skipIf(isWindows)('a copied view of a truncated file is an error, not a signal', () => {
  const script = `fs.writeFileSync(folder + '/cut', Buffer.alloc(1 << 20, 1));
    addon.setExternalBuffers(false);
    const file = addon.openInput(folder + '/cut', { mapped: true, guard: false });
    fs.truncateSync(folder + '/cut', 0);
    try { file.view(0, 1 << 20) } catch (error) { console.log(error.code) }`
  expect(runScript(folder, script)).toMatchObject({ status: 0, stdout: 'ERR_FILE_CHANGED\n', stderr: '' })
})

describe.skipIf(isWindows)('a guarded map', () => {
  const head = (guard: boolean) => `
    fs.writeFileSync(folder + '/guarded', Buffer.alloc(1 << 20, 7));
    const file = addon.openInput(folder + '/guarded', { mapped: true, guard: ${guard} });
    const view = file.view(0, 1 << 20);
    const codeOf = (action) => { try { action(); return 'none' } catch (error) { return error.code } };`

  test('keeps the process alive when its file is truncated; every later call fails', () => {
    const script = `${head(true)}
      fs.truncateSync(folder + '/guarded', 5000);
      console.log(view[4999], view[5000], view.subarray(5000).every((byte) => byte === 0));
      const stat = fs.statSync(folder + '/guarded');
      console.log(codeOf(() => file.verifyUnchanged()), codeOf(() => file.view(0, 1)));
      const output = addon.createOutput(folder + '/guarded-copy', 0);
      output.write(view, 0).catch((error) => console.log(error.code)).then(() => output.abort())`
    expect(runScript(folder, script)).toMatchObject({
      status: 0,
      stdout: '7 0 true\nERR_FILE_CHANGED ERR_FILE_CHANGED\nERR_FILE_CHANGED\n',
      stderr: '',
    })
  })

  test('reports ERR_FILE_CHANGED for a write from truncated bytes', () => {
    const script = `${head(true)}
      const output = addon.createOutput(folder + '/guarded-copy', 0);
      fs.truncateSync(folder + '/guarded', 0);
      output.write(view, 0).catch((error) => console.log(error.code)).then(() => output.abort())`
    expect(runScript(folder, script)).toMatchObject({ status: 0, stdout: 'ERR_FILE_CHANGED\n', stderr: '' })
  })

  test('guards views after close', () => {
    const script = `${head(true)} file.close(false); fs.truncateSync(folder + '/guarded', 0);
      console.log(view.every((byte) => byte === 0))`
    expect(runScript(folder, script)).toMatchObject({ status: 0, stdout: 'true\n', stderr: '' })
  })

  test('does not guard other mappings', () => {
    const script = `${head(false)}
      fs.writeFileSync(folder + '/watched', Buffer.alloc(1 << 16));
      const watched = addon.openInput(folder + '/watched', { mapped: true, guard: true });
      fs.truncateSync(folder + '/guarded', 0);
      console.log(view[10_000])`
    expect(runScript(folder, script)).toMatchObject({ signal: 'SIGBUS', stdout: '' })
  })
})
