/** What `npm pack` says about the binaries; test/programs/package.mjs packs and uses the result. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

// The scripts are plain JavaScript, which the type checker does not read.
const {
  binaryLines,
  shippedBinaries,
}: {
  binaryLines(root: string): string[]
  shippedBinaries(root: string): string[]
} = await import(String(new URL('../../scripts/shipped_binaries.mjs', import.meta.url)))

const root = mkdtempSync(join(tmpdir(), 'tilework-prepack-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('a checkout without prebuilds ships nothing', () => {
  expect(shippedBinaries(root)).toEqual([])
})

test('the binaries are named with their sizes', () => {
  for (const path of ['linux-x64/tilework.glibc.node', 'darwin-arm64/tilework.node']) {
    mkdirSync(join(root, 'prebuilds', path, '..'), { recursive: true })
    writeFileSync(join(root, 'prebuilds', path), new Uint8Array(1500))
  }
  writeFileSync(join(root, 'prebuilds', 'linux-x64', 'notes.txt'), '')
  expect(binaryLines(root).slice(0, 3)).toEqual([
    'The package will hold 2 binaries:',
    '  prebuilds/darwin-arm64/tilework.node, 2 KiB',
    '  prebuilds/linux-x64/tilework.glibc.node, 2 KiB',
  ])
})

test('npm builds and names them before it packs, and never when it installs', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(scripts.prepack).toBe('node scripts/prepack.mjs')
  expect(scripts.prepare).not.toContain('prepack')
})
