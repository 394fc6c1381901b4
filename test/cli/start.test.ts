/** What a start of the command line loads: nothing but its own few files until a command is called. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { withSlashes } from '../../lib/bytes/windows_names.js'
import { runCli } from './run_cli.js'

const LIB = fileURLToPath(new URL('../../lib', import.meta.url))

/** All files that importing `path` loads at once; dynamic imports and types are not followed. */
function loadedWith(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  if (!path.endsWith('.ts')) return seen
  for (const [, name] of readFileSync(path, 'utf8').matchAll(
    /^(?:import|export) (?!type\b)[^;]*?from '([^']+)'/gm,
  )) {
    if (name!.startsWith('.')) loadedWith(join(dirname(path), name!.replace(/\.js$/, '.ts')), seen)
    else seen.add(name!)
  }
  return seen
}

it('the command loads no library, no addon and no package before it knows its arguments', () => {
  const loaded = [...loadedWith(join(LIB, 'cli/main.ts'))].map((path) => withSlashes(relative(LIB, path)))
  expect(loaded.toSorted()).toEqual([
    '../package.json',
    'cli/exit_codes.ts',
    'cli/main.ts',
    'cli/run.ts',
    'package_version.ts',
  ])
})

it('prints the version alone and beside other arguments', async () => {
  const { version } = JSON.parse(readFileSync(join(LIB, '../package.json'), 'utf8')) as { version: string }
  for (const args of [['--version'], ['-V'], ['--version', 'inspect'], ['inspect', '-V']]) {
    expect(await runCli(args)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  }
})

it('loads every command for help, and advises after a typo', async () => {
  const { stdout } = await runCli(['--help'])
  const names = [...stdout.matchAll(/^ {2}([a-z]+) \[/gm)].map(([, name]) => name)
  expect(names).toEqual([
    ...[
      'inspect',
      'check',
      'compress',
      'convert',
      'devices',
      'diff',
      'edit',
      'externalize',
      'image',
      'internalize',
      'layout',
      'merge',
      'optimize',
      'queue',
      'view',
      'worker',
      'help',
    ],
  ])
  expect((await runCli(['help', 'inspect'])).stdout).toContain('Usage: tilework inspect')
  expect((await runCli(['inspcet'])).stderr).toContain('Did you mean inspect?')
})
