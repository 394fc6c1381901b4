/** The manifest: what comes back, from damaged files as well, and from several writers. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { Manifest } from '../../../lib/pipeline/many/manifest.js'
import { type ManifestEntry, parseManifestLine } from '../../../lib/pipeline/many/manifest_line.js'

const FOLDER = mkdtempSync(join(tmpdir(), 'tilework-manifest-'))
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }))

let files = 0
const fresh = (): string => join(FOLDER, `${files++}.jsonl`)

function entryOf(output: string, settings = 's'): ManifestEntry {
  return {
    input: { path: '/in/a b\n.btf', bytes: 1, mtime: '1700000000000000000', inode: '7', sha256: 'abc' },
    output: { path: output, format: 'btf', bytes: 2, mtime: '1700000000000000001', inode: '8' },
    settings,
  }
}

async function readAll(path: string, outputs: readonly string[]): Promise<(string | undefined)[]> {
  const manifest = await Manifest.open(path, outputs)
  await manifest.close()
  return outputs.map((output) => manifest.get(output)?.settings)
}

describe('a manifest', () => {
  it('gives entries back, the last of each output, and only those asked for', async () => {
    const path = fresh()
    const [one, two] = [join(FOLDER, 'out/one'), join(FOLDER, 'ü\u2028/two')]
    const manifest = await Manifest.open(path, [])
    manifest.append(entryOf(one, 'first'))
    manifest.append(entryOf(two))
    manifest.append(entryOf(one, 'second'))
    await manifest.close()
    expect(await readAll(path, [one, two, join(FOLDER, 'three')])).toEqual(['second', 's', undefined])
    const again = await Manifest.open(path, [one])
    expect(again.get(two)).toBeUndefined()
    // Paths inside are relative to the folder of the manifest.
    expect(again.get(one)).toEqual(entryOf('out/one', 'second'))
    await again.close()
  })

  it('cut at any byte, and continued, is read without complaint', async () => {
    const path = fresh()
    const outputs = ['a', 'b'].map((name) => join(FOLDER, name))
    const manifest = await Manifest.open(path, [])
    for (const output of outputs) manifest.append(entryOf(output))
    await manifest.close()
    const whole = readFileSync(path)
    const ends = [...whole.entries()].filter(([, byte]) => byte === 0x0a).map(([index]) => index + 1)
    for (let length = 0; length <= whole.length; length += 7) {
      writeFileSync(path, whole.subarray(0, length))
      const continued = await Manifest.open(path, outputs)
      // An entry may lack its line's end and be whole all the same.
      const least = ends.slice(1).filter((end) => end <= length).length
      expect(outputs.filter((output) => continued.get(output)).length).toBeGreaterThanOrEqual(least)
      continued.append(entryOf(join(FOLDER, 'c')))
      await continued.close()
      const after = await Manifest.open(path, [join(FOLDER, 'c')])
      await after.close()
      expect({ length, entry: after.get(join(FOLDER, 'c'))?.settings, unreadable: after.unreadable }).toEqual(
        {
          ...{ length, entry: 's', unreadable: [] },
        },
      )
    }
  })

  it('several writers at a time lose nothing', async () => {
    const path = fresh()
    const writers = await Promise.all([1, 2, 3].map(() => Manifest.open(path, [])))
    const outputs: string[] = []
    for (let index = 0; index < 300; index++) {
      const output = join(FOLDER, `${index}`)
      outputs.push(output)
      writers[index % 3]!.append(entryOf(output))
    }
    await Promise.all(writers.map((writer) => writer.close()))
    const manifest = await Manifest.open(path, outputs)
    expect(manifest.unreadable).toEqual([])
    expect(outputs.every((output) => manifest.get(output))).toBe(true)
    await manifest.close()
  })

  it('any line that is none of its own is not an entry', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const line = parseManifestLine(text)
        expect(line === undefined || ['torn', 'version', 'entry'].includes(line.kind)).toBe(true)
      }),
    )
    const whole = entryOf('a')
    const broken: object[] = [
      { ...whole, settings: 1 },
      { ...whole, input: { ...whole.input, bytes: -0.5 } },
      { ...whole, input: { ...whole.input, mtime: 5 } },
      { ...whole, input: { ...whole.input, parts: [{ name: 'x' }] } },
      { ...whole, output: { ...whole.output, mtime: undefined } },
      { ...whole, output: [] },
      { ...whole, output: { ...whole.output, undo: {} } },
      { ...whole, output: { ...whole.output, undo: [{ output: '../x', options: {} }] } },
      { ...whole, output: { ...whole.output, undo: [{ output: 'x', options: [] }] } },
      { ...whole, output: { ...whole.output, undo: [{ output: 'x', options: { shape: ['2'] } }] } },
      { ...whole, output: { ...whole.output, undo: [{ output: 'x', options: { as: 'data' } }] } },
      { ...whole, output: { ...whole.output, undo: [{ output: 'x', options: { force: true } }] } },
      [],
    ]
    for (const entry of broken) expect(parseManifestLine(JSON.stringify(entry))).toBeUndefined()
    expect(parseManifestLine(JSON.stringify(whole))).toEqual({ kind: 'entry', entry: whole })
  })

  it('is refused where it is a folder, a device, or lies nowhere', async () => {
    // Node on Windows opens folders, too.
    const code = process.platform === 'win32' ? 'ERR_ARGUMENT' : 'ERR_IO'
    await expect(Manifest.open(FOLDER, [])).rejects.toMatchObject({ code })
    if (process.platform !== 'win32')
      await expect(Manifest.open('/dev/null', [])).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    await expect(Manifest.open(join(FOLDER, 'none/x'), [])).rejects.toMatchObject({ code: 'ERR_IO' })
  })

  it('gives its descriptor back, also when it is refused', async () => {
    const path = fresh()
    writeFileSync(path, 'something\nelse\n')
    await expect(Manifest.open(path, [])).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    const next = (): number => {
      const descriptor = openSync(path, 'r')
      closeSync(descriptor)
      return descriptor
    }
    const before = next()
    for (let i = 0; i < 5; i++) await Manifest.open(path, []).catch(() => undefined)
    expect(next()).toBe(before)
    // A late second close would hit whatever file has the number by then.
    const [own, other] = [openSync(path, 'r'), fresh()]
    await Manifest.open(path, []).catch(() => undefined)
    writeFileSync(other, '')
    const others = Array.from({ length: 5 }, () => openSync(other, 'r'))
    await new Promise((resume) => setTimeout(resume, 50))
    for (const descriptor of [own, ...others]) closeSync(descriptor)
  })
})
