/**
 * One file or folder for every known advisory of onnx and onnxruntime, with the expected outcome. Two advisories concern
 * functions that tilework does not have: CVE-2024-5187 (unpacking an archive) and CVE-2026-28500 (a trust prompt for
 * downloaded models).
 */
import { spawn } from 'node:child_process'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { check, open, save } from '../../../lib/index.js'
import {
  entry,
  field,
  int,
  join as joinBytes,
  modelProto,
  raw,
  tensorProto,
} from '../../formats/onnx/onnx_bytes.js'
import { codeOf, expectRefusal } from '../refusal.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-advisories-'))
  mkdirSync(join(folder, 'model'))
  put('secret.bin', SECRET)
})
afterEach(() => rmSync(folder, { recursive: true }))

const SECRET = Uint8Array.of(0x73, 0x65, 0x63, 0x72)
const GOOD = Uint8Array.of(1, 2, 3, 4)

function put(name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  return path
}

const outside = (external: Record<string, string>) =>
  modelProto({ initializers: [tensorProto({ dims: [4], type: 2, name: 'w', external })] })

const inside = (values: Uint8Array, type: number, dims: readonly number[], name = 'w') =>
  modelProto({ initializers: [tensorProto({ dims, type, name, values })] })

/** Writes the files of the attack beside the model. @returns the model */
type Attack = () => Uint8Array

const ATTACKS: readonly (readonly [id: string, code: string, attack: Attack])[] = [
  ['CVE-2022-25882', 'ERR_PATH_ESCAPE', () => outside({ location: '../secret.bin' })],
  ['CVE-2024-27318', 'ERR_PATH_ESCAPE', () => outside({ location: 'x/../../secret.bin' })],
  [
    'CVE-2024-27319, a name that does not end where a message about it does',
    'ERR_TRUNCATED',
    () => inside(raw(1), 1, [4], '%s%n\0'.repeat(100_000)),
  ],
  [
    'CVE-2026-27489 and CVE-2026-34447, a symlink',
    'ERR_PATH_ESCAPE',
    () => {
      symlinkSync(join(folder, 'secret.bin'), join(folder, 'model', 'w.bin'))
      return outside({ location: 'w.bin' })
    },
  ],
  [
    'CVE-2026-34447, a symlink as directory',
    'ERR_PATH_ESCAPE',
    () => {
      symlinkSync(folder, join(folder, 'model', 'data'))
      return outside({ location: 'data/secret.bin' })
    },
  ],
  [
    'CVE-2026-34446',
    'ERR_PATH_ESCAPE',
    () => {
      linkSync(join(folder, 'secret.bin'), join(folder, 'model', 'w.bin'))
      return outside({ location: 'w.bin' })
    },
  ],
  [
    'CVE-2026-34445, a length of exabytes',
    'ERR_OVERFLOW',
    () => {
      put('model/w.bin', GOOD)
      return outside({ location: 'w.bin', length: '1152921504606846976' })
    },
  ],
  ['CVE-2026-34445, a length below 0', 'ERR_HEADER', () => outside({ location: 'w.bin', length: '-1' })],
  ['PR 8033, 4-bit values', 'ERR_TRUNCATED', () => inside(raw(1), 22, [9])],
  ['PR 8038, 2-bit values', 'ERR_TRUNCATED', () => inside(raw(1), 26, [9])],
  ['PR 8319, packed values in a typed field', 'ERR_TRUNCATED', () => inside(field(5, [1, 2]), 21, [9])],
  ['PR 8032, no multiple of an element', 'ERR_TRUNCATED', () => inside(raw(1, 2, 3, 4, 5, 6, 7), 1, [2])],
  ['onnxruntime PR 26776', 'ERR_PATH_ESCAPE', () => outside({ location: '/etc/hostname' })],
  [
    'onnxruntime PR 28709 and 29011',
    'ERR_PATH_ESCAPE',
    () => outside({ location: '*/_ORT_MEM_ADDR_/*', offset: '4096', length: '4' }),
  ],
]

describe('an attack on readers', () => {
  it.each(ATTACKS)('%s: %s', async (_, code, attack) => {
    const path = put('model/m.onnx', attack())
    for (const level of ['lenient', 'strict'] as const) {
      expect(await codeOf(() => open(path, { level }))).toBe(code)
      const errors = (await check(path, { level })).filter(({ severity }) => severity === 'error')
      expect(errors.map((finding) => finding.code)).toContain(code)
      for (const { message } of errors) expect(message.length).toBeLessThan(1000)
    }
  })

  it('onnxruntime PR 27430 and 27539: a model from memory opens no folder', async () => {
    const file = await open(outside({ location: 'package.json' }))
    expect(file.tensors.at(0)!.hasData).toBe(false)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_UNSUPPORTED'])
  })

  it('CVE-2026-34445: keys do not become object properties', async () => {
    put('model/w.bin', GOOD)
    const names = { __proto__x: '1', constructor: 'x', toString: 'y', checksum: 'z' }
    const path = put('model/m.onnx', outside({ location: 'w.bin', ...names }))
    const file = await open(path)
    const [tensor] = [...file.tensors]
    expect(String(Object.getPrototypeOf({}).constructor)).toContain('Object')
    expect([Object.hasOwn(tensor!, 'checksum'), Object.hasOwn(tensor!, 'toString')]).toEqual([false, false])
    file.close()
  })

  it('GHSA-7w46-vvrh-m8q5: recursive functions, also from a subgraph', async () => {
    const call = (attributes: Uint8Array = new Uint8Array(0)) =>
      joinBytes(field(2, 'y'), field(4, 'F'), field(7, 'own'), attributes)
    const branch = joinBytes(field(1, 'g'), field(6, field(1, call())), int(20, 5))
    const hidden = joinBytes(field(2, 'y'), field(4, 'If'), field(5, branch))
    for (const body of [call(), hidden]) {
      const recursive = joinBytes(field(1, 'F'), field(5, 'y'), field(7, body), field(10, 'own'))
      const path = put('model/m.onnx', modelProto({ nodes: [call()] }, field(25, recursive)))
      const found = await check(path, { level: 'strict' })
      expect(found.filter(({ severity }) => severity === 'error').map(({ code }) => code)).toContain(
        'ERR_GRAPH',
      )
      using file = await open(path)
      expect(file.onnx!.functions.length).toBe(1)
    }
  })

  it('GHSA-q56x-g2fj-4rj6: a file that is replaced by a symlink during opening is never read', async () => {
    put('model/good/w.bin', GOOD)
    put('out/w.bin', SECRET)
    const path = put('model/m.onnx', outside({ location: 'data/w.bin' }))
    const swapper = spawn(process.execPath, ['-e', SWAP, folder], { stdio: 'ignore' })
    try {
      const results = { read: 0, refused: 0 }
      for (const until = Date.now() + 1500; Date.now() < until; ) {
        try {
          using file = await open(path)
          if (!file.tensors.at(0)!.hasData) results.refused += 1
          else {
            expect(await file.dense('w').bytes()).toEqual(GOOD)
            results.read += 1
          }
        } catch (error) {
          expectRefusal(error)
          results.refused += 1
        }
      }
      expect(results.read + results.refused).toBeGreaterThan(0)
    } finally {
      swapper.kill()
    }
  })
})

/** Switches the symlink `data` between the model's folder and one outside, for at most ten seconds. */
const SWAP = `
const { renameSync, symlinkSync } = require('node:fs')
const { join } = require('node:path')
const folder = process.argv[1]
const end = Date.now() + 10000
while (Date.now() < end) {
  for (const target of [join(folder, 'model', 'good'), join(folder, 'out')]) {
    symlinkSync(target, join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'model', 'data'))
  }
}
`

describe('an attack on writers', () => {
  it('CVE-2025-51480: no location makes a save write outside of the folder', async () => {
    const victim = put('victim.bin', SECRET)
    put('model/w.bin', GOOD)
    using file = await open(put('model/m.onnx', outside({ location: 'w.bin' })))
    const target = join(folder, 'model', 'out.onnx')
    for (const location of ['../victim.bin', victim, 'x/../../victim.bin']) {
      const saving = () => save(target, file, { external: { location, threshold: 0 } })
      expect(await codeOf(saving)).toBe('ERR_PATH_ESCAPE')
    }
    symlinkSync(folder, join(folder, 'model', 'way'))
    const behindLink = () => save(target, file, { external: { location: 'way/victim.bin', threshold: 0 } })
    expect(await codeOf(behindLink)).toBe('ERR_PATH_ESCAPE')
    expect(readFileSync(victim)).toEqual(Buffer.from(SECRET))
  })

  it('CVE-2025-51480: a copy overwrites no existing file and writes through no symlink', async () => {
    put('model/w.bin', GOOD)
    using file = await open(put('model/m.onnx', outside({ location: 'w.bin' })))
    mkdirSync(join(folder, 'copy'))
    symlinkSync(join(folder, 'secret.bin'), join(folder, 'copy', 'w.bin'))
    const target = join(folder, 'copy', 'm.onnx')
    await save(target, file)
    expect(readFileSync(join(folder, 'secret.bin'))).toEqual(Buffer.from(SECRET))
    expect(readlinkSync(join(folder, 'copy', 'w.bin'))).toBe(join(folder, 'secret.bin'))
    // The values of the copy have a place of their own.
    using copy = await open(target, { level: 'strict' })
    expect(await copy.dense('w').bytes()).toEqual(GOOD)
  })

  it('PR 8260: new data ignores the offsets of the model', async () => {
    const offset = String(2 ** 40)
    const external = [entry('location', 'w.bin'), entry('offset', offset)].map((each) => field(13, each))
    const preset = joinBytes(
      tensorProto({ dims: [4], type: 2, name: 'w', values: raw(...GOOD) }),
      ...external,
    )
    using file = await open(modelProto({ initializers: [preset] }))
    const target = join(folder, 'model', 'out.onnx')
    await save(target, file, { external: { location: 'w.bin', threshold: 1 } })
    expect(readdirSync(join(folder, 'model')).sort()).toEqual(['out.onnx', 'w.bin'])
    expect(readFileSync(join(folder, 'model', 'w.bin')).length).toBeLessThan(4096)
    using read = await open(target, { level: 'strict' })
    expect(await read.dense('w').bytes()).toEqual(GOOD)
  })
})
