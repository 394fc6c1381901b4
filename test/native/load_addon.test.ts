/** Loading the addon: the searched paths, and the error when no binary can be loaded. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { TileworkError } from '../../lib/errors.js'
import { loadAddon } from '../../lib/native/load_addon.js'
import { packageRoot } from '../../lib/package_root.js'
import { ADDON } from './run_script.js'

const PLATFORM = `${process.platform}-${process.arch}`
const LIBC = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
const PACKAGE = `@tilework/${PLATFORM}${process.platform === 'linux' ? (LIBC.header.glibcVersionRuntime ? '-glibc' : '-musl') : ''}`
const named = process.env.TILEWORK_PREBUILD

let folder: string
let number = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-load-'))
})
afterEach(() => {
  if (named === undefined) delete process.env.TILEWORK_PREBUILD
  else process.env.TILEWORK_PREBUILD = named
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A new folder with the given files, by path: bytes, or a copy of the addon for `true`. */
function folderWith(files: Record<string, Uint8Array | string | true>): string {
  number += 1
  const root = join(folder, `${number}`)
  mkdirSync(root)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    if (content === true) copyFileSync(ADDON, join(root, path))
    else writeFileSync(join(root, path), content)
  }
  return root
}

/** The lines of the error that loading ends in: the cause first, then the other attempts, then the advice. */
function errorLines(...folders: string[]): string[] {
  try {
    loadAddon(folders.length > 0 ? folders : undefined)
  } catch (error) {
    expect(error).toBeInstanceOf(TileworkError)
    expect((error as TileworkError).code).toBe('ERR_NATIVE_LOAD')
    return (error as TileworkError).message.split('\n')
  }
  throw new Error('The addon was loaded.')
}

describe('the addon', () => {
  it.each([
    'build/Release/tilework.node',
    'build/Debug/tilework.node',
    `prebuilds/${PLATFORM}/tilework.node`,
    `prebuilds/${process.platform}-${process.arch}+s390x/tilework.node`,
    'tilework.node',
    `node_modules/${PACKAGE}/tilework.node`,
  ])('is found at %s', (path) => {
    const root = folderWith({
      [path]: true,
      'package.json': '{}',
      [`node_modules/${PACKAGE}/package.json`]: '{}',
    })
    expect(loadAddon([root]).threads()).toBeGreaterThan(0)
  })

  it('is found after a broken binary', () => {
    const broken = folderWith({ 'build/Release/tilework.node': 'no library' })
    expect(loadAddon([broken, folderWith({ 'tilework.node': true })]).threads()).toBeGreaterThan(0)
  })

  it('is loaded only from the folder in TILEWORK_PREBUILD when that is set', () => {
    process.env.TILEWORK_PREBUILD = folderWith({ [`prebuilds/${PLATFORM}/tilework.node`]: true })
    expect(loadAddon().threads()).toBeGreaterThan(0)
    process.env.TILEWORK_PREBUILD = join(folder, 'nowhere')
    const lines = errorLines()
    expect(lines[0]).toContain(
      `(${PLATFORM}, Node ${process.versions.node}): ${join(folder, 'nowhere')} does not exist.`,
    )
    expect(lines.slice(1)).toEqual([
      expect.stringMatching(
        /^ {2}Set TILEWORK_PREBUILD to the folder that holds tilework\.node .* or unset it\.$/,
      ),
    ])
  })

  it('ignores binaries of other packages', () => {
    expect(errorLines(folderWith({ 'build/Release/other.node': true }))[0]).toContain(
      'holds no tilework.node, build/Release or prebuilds',
    )
  })
})

describe('the error of a failed load', () => {
  it('names a broken binary first', () => {
    const empty = folderWith({})
    const broken = folderWith({ [`prebuilds/${PLATFORM}/tilework.node`]: 'no library', 'package.json': '{}' })
    const lines = errorLines(empty, broken)
    expect(lines[0]).toContain(join(broken, 'prebuilds', PLATFORM, 'tilework.node'))
    expect(lines[0]).toContain(` is not a shared library for ${PLATFORM} (`)
    expect(lines[1]).toBe(`  also tried: ${empty} holds no tilework.node, build/Release or prebuilds`)
    expect(lines[2]).toContain('Install tilework again on this machine ("npm install tilework")')
  })

  it('is thrown for a truncated binary, which would crash the process', () => {
    const head = readFileSync(ADDON).subarray(0, 4096)
    const cut = folderWith({ 'build/Release/tilework.node': head, 'CMakeLists.txt': '' })
    const lines = errorLines(cut)
    // Windows itself refuses it.
    const said = process.platform === 'win32' ? '' : 'file too short: 4096 of \\d+ bytes'
    expect(lines[0]).toMatch(new RegExp(`tilework\\.node is not a shared library for .*\\(${said}`))
    expect(lines[1]).toContain('Run "npm run build:all" in the checkout')
  })

  it.skipIf(process.platform !== 'linux')('names the C library of a binary for another one', () => {
    const [own, other] = PACKAGE.endsWith('-musl') ? ['musl', 'glibc'] : ['glibc', 'musl']
    const path = `prebuilds/${PLATFORM}/tilework.${other}.node`
    expect(errorLines(folderWith({ [path]: true }))[0]).toContain(
      `is built for ${other}; this process runs on ${own}`,
    )
  })

  it('names the package for this platform where npm left it out', () => {
    const manifest = JSON.stringify({ optionalDependencies: { [PACKAGE]: '0.1.0' } })
    const lines = errorLines(folderWith({ 'package.json': manifest }))
    expect(lines[0]).toContain(`: ${PACKAGE} is not installed.`)
    expect(lines.at(-1)).toContain(
      `npm install --include=optional --os=${process.platform} --cpu=${process.arch}`,
    )
  })

  it('names the platforms that prebuilds/ has', () => {
    const other = folderWith({
      'prebuilds/sunos-sparc/tilework.node': 'x',
      'prebuilds/aix-ppc64/tilework.node': 'x',
    })
    expect(errorLines(other)[0]).toContain('prebuilds holds binaries for aix-ppc64, sunos-sparc only.')
  })

  it('gives advice for a bundle without the binary', () => {
    const lines = errorLines(folderWith({}))
    expect(lines.at(-1)).toContain(`node_modules/@tilework/${process.platform}-${process.arch}`)
  })
})

describe('the package folder', () => {
  it('is the one that holds the package.json named "tilework"', () => {
    const manifest = JSON.parse(readFileSync(join(packageRoot()!, 'package.json'), 'utf8')) as {
      name: string
    }
    expect(manifest.name).toBe('tilework')
  })
})
