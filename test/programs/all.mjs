/**
 * Everything that `npm test` runs, one step after the other. Its arguments choose a part of the suite, as in
 * `npm test -- test/layout`.
 */
import { spawnSync } from 'node:child_process'
import { Steps } from '../../scripts/steps.mjs'
import { fail, ROOT } from '../../scripts/toolchain.mjs'

const BUILD = 'build what changed'
const suite = process.argv.slice(2)
const STEPS = [
  { name: BUILD, usualSeconds: 90, command: ['npm', 'run', '--silent', 'build:all'] },
  { name: 'C++ tests', usualSeconds: 240, command: ['npm', 'run', '--silent', 'test:native'] },
  {
    name: 'a sample of the reorders between all layouts',
    usualSeconds: 60,
    command: ['npm', 'run', '--silent', 'test:exhaustive', '--', '--share', '0.02'],
  },
  {
    name: 'reorders as large as those of users',
    usualSeconds: 120,
    command: ['npm', 'run', '--silent', 'test:sizes'],
  },
  {
    name: suite.length === 0 ? 'TypeScript suite' : `TypeScript suite: ${suite.join(' ')}`,
    // A part of it takes as long as its folders do.
    usualSeconds: suite.length === 0 ? 840 : 60,
    command: ['npx', '--no-install', 'vitest', 'run', ...suite],
  },
]

const steps = new Steps('npm test', STEPS)
const failed = []
for (const { name, command } of STEPS) {
  steps.next()
  const [program, ...args] = command
  const { status } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) failed.push(name)
  // Nothing else can work without; other failures do not hide each other.
  if (failed.includes(BUILD)) break
}
steps.done()
if (failed.length > 0) fail(`npm test failed: ${failed.join('; ')}`)
