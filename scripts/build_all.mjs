/** Builds the addon and the library: `npm run build:all`, and `npm ci` in a checkout. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Steps } from './steps.mjs'
import { ROOT } from './toolchain.mjs'

const STEPS = [
  { name: 'native addon (C++)', usualSeconds: 90, script: 'build_native.mjs' },
  { name: 'library (TypeScript)', usualSeconds: 8, script: 'build_lib.mjs' },
]

const steps = new Steps('Building tilework', STEPS)
for (const { script } of STEPS) {
  steps.next()
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', script)], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}
steps.done()
