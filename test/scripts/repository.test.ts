/** The addresses of published packages. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'

// The scripts are plain JavaScript, which the type checker does not read.
const { makePackages }: { makePackages(out: string, names: readonly string[]): Record<string, string> } =
  await import(String(new URL('../../scripts/platform_packages.mjs', import.meta.url)))
const { repositoryFields }: { repositoryFields(address?: string): Record<string, unknown> } = await import(
  String(new URL('../../scripts/repository.mjs', import.meta.url))
)

afterEach(() => vi.unstubAllEnvs())

it('are those of one setting, and none without it', () => {
  expect(repositoryFields('')).toEqual({})
  expect(repositoryFields('https://example.com/owner/tilework')).toEqual({
    homepage: 'https://example.com/owner/tilework#readme',
    bugs: 'https://example.com/owner/tilework/issues',
    repository: { type: 'git', url: 'git+https://example.com/owner/tilework.git' },
  })
})

it('stand in the packages', async () => {
  vi.stubEnv('TILEWORK_REPOSITORY', 'https://example.com/owner/tilework')
  const folder = mkdtempSync(join(tmpdir(), 'tilework-packages-'))
  try {
    const { tilework } = makePackages(folder, [])
    const { default: manifest } = await import(join(tilework!, 'package.json'), { with: { type: 'json' } })
    expect(manifest).toMatchObject(repositoryFields())
    expect(manifest.files).toContain('!dist/**/*.map')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
