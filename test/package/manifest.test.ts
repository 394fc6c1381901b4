/** What package.json promises to users and to npm; test/programs/package.mjs tries the packed result. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { matchFiles } from '../../lib/internal.js'
// @ts-expect-error a script without types
import { withoutPrepare, withPrepare } from '../../scripts/packed_manifest.mjs'

const root = new URL('../../', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, root), 'utf8')
const manifest = JSON.parse(read('package.json'))

const ENTRIES = {
  '.': 'index',
  './onnx': 'onnx',
  './tmfile': 'tmfile',
  './layout': 'layout',
  './remote': 'remote',
  './formats': 'formats',
  './queue': 'queue',
}

describe('package.json', () => {
  test('packs the compiled library, the binaries, the C headers for other addons, deploy/ and the documentation alone', () => {
    expect(manifest.files).toEqual([
      'dist',
      '!dist/**/*.map',
      'deploy/Dockerfile',
      'deploy/README.md',
      'deploy/kubernetes/*.yaml',
      'docs/*.md',
      'docs/*.svg',
      'docs/images/*.png',
      'docs/decisions/*.md',
      'examples/electron/*',
      'examples/reorder_file.mjs',
      'native/dlpack/capsule.h',
      'native/dlpack/dlpack.h',
      'native/reorder/README.md',
      'prebuilds',
      'README.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'LICENSE',
      'SECURITY.md',
      'THIRD_PARTY_NOTICES',
    ])
  })

  test('packs what the links of its pages lead to', async () => {
    const folder = fileURLToPath(root)
    const patterns: string[] = manifest.files.filter((pattern: string) => !pattern.startsWith('!'))
    const packed = await Promise.all(patterns.map((pattern) => matchFiles(join(folder, pattern))))
    const files = new Set(packed.flat().map((path) => relative(folder, path)))
    const pages = [...files].filter((path) => path.endsWith('.md'))
    expect(pages).toContain(join('docs', 'architecture.md'))
    const links = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(([, link]) => ({ page, link: link! })),
    )
    expect(links.filter(({ page, link }) => !files.has(join(dirname(page), link)))).toEqual([])
  })

  test('asks for a Node that can require ES modules', () => {
    expect(manifest.engines).toEqual({ node: '>=20.19' })
  })

  test('has the entries for import and require, both with types', () => {
    expect(manifest.type).toBe('module')
    for (const [path, name] of Object.entries(ENTRIES)) {
      expect(manifest.exports[path]).toEqual({
        import: { types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` },
        require: { types: `./dist/${name}.d.cts`, default: `./dist/${name}.cjs` },
      })
    }
    expect(Object.keys(manifest.exports)).toEqual([...Object.keys(ENTRIES), './package.json'])
    expect(manifest.bin).toEqual({ tilework: './dist/cli/main.js' })
  })

  test('runs nothing when a user installs it', () => {
    for (const hook of ['preinstall', 'install', 'postinstall'])
      expect(manifest.scripts).not.toHaveProperty(hook)
    const packed = withoutPrepare(read('package.json'))
    expect(JSON.parse(packed).scripts).not.toHaveProperty('prepare')
    expect(withPrepare(packed)).toBe(read('package.json'))
    // npm runs node-gyp by itself for a package that has this file.
    expect(existsSync(new URL('binding.gyp', root))).toBe(false)
  })

  test('has no script "build", before which npm would run "prebuild" each time', () => {
    expect(manifest.scripts).toHaveProperty('prebuild')
    expect(manifest.scripts).not.toHaveProperty('build')
  })

  test('builds against Node-API 9, the newest that Node 20 has', () => {
    expect(manifest.binary).toEqual({ napi_versions: [9] })
    expect(Number(process.versions.napi)).toBeGreaterThanOrEqual(9)
  })

  test('needs few packages at run time', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual([
      '@streamparser/json',
      'commander',
      'node-gyp-build',
      'picocolors',
      'picomatch',
    ])
  })
})

describe('package-lock.json', () => {
  test('names no host, so that any registry serves it', () => {
    const lock = JSON.parse(read('package-lock.json'))
    for (const entry of Object.values<object>(lock.packages)) expect(entry).not.toHaveProperty('resolved')
    expect(read('.npmrc')).toContain('omit-lockfile-registry-resolved=true')
  })

  test('agrees with package.json', () => {
    const [own] = Object.values<Record<string, unknown>>(JSON.parse(read('package-lock.json')).packages)
    expect(own).toMatchObject({
      version: manifest.version,
      dependencies: manifest.dependencies,
      devDependencies: manifest.devDependencies,
    })
  })
})
