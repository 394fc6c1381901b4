/** A change of public types cannot be merged without its report and a new mark in the changelog. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const SCRIPT = pathToFileURL(join(ROOT, 'scripts/api_report.mjs')).href

const REPORTS = join(ROOT, 'etc/api')
const reports = Object.fromEntries(
  readdirSync(REPORTS).map((file) => [
    file.replace('.api.md', ''),
    readFileSync(join(REPORTS, file), 'utf8'),
  ]),
)
const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')

/** The faults that the check finds; a process of its own, because the compiler takes long to load in a worker. */
function faults(changedReports: Record<string, string>, changedChangelog: string): string[] {
  const program = `
    import { readFileSync } from 'node:fs'
    import { checkReports } from ${JSON.stringify(SCRIPT)}
    const [reports, changelog] = JSON.parse(readFileSync(0, 'utf8'))
    console.log(JSON.stringify(checkReports(reports, changelog)))`
  // Through a pipe: a command line of Windows holds 32,767 characters.
  const input = JSON.stringify([changedReports, changedChangelog])
  const args = ['--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', input })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as string[]
}

describe('public types', () => {
  it('are those of the reports, and the changelog has their mark', () => {
    expect(faults(reports, changelog)).toEqual([])
  })

  it('that differ from a report ask for a new one and for a line in the changelog', () => {
    const changed = { ...reports, layout: `${reports.layout}export type Added = string\n` }
    expect(faults(changed, changelog)).toEqual([
      'The public types of "tilework/layout" differ from etc/api/layout.api.md: run "npm run api".',
      expect.stringMatching(
        /^CHANGELOG\.md has the mark [0-9a-f]{12} .*, which are [0-9a-f]{12}: describe the change/,
      ),
    ])
  })

  it('without a mark in the changelog ask for it', () => {
    expect(faults(reports, '# Changelog\n')).toEqual([
      expect.stringMatching(
        /^CHANGELOG\.md has the mark \(none\) .* set "<!-- public types: [0-9a-f]{12} -->"\.$/,
      ),
    ])
  })
})
