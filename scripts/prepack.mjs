/**
 * Runs before `npm pack` and `npm publish`: builds the checkout as `prepare` does, and the binary of this machine where
 * `prebuilds/` has none, because a package without binaries installs and then does not load; writes the licences of what others
 * wrote; prints which binaries the package will hold; and takes `prepare` out of the manifest. An install runs it never.
 *
 * Everything goes to stderr: `npm pack` prints the name of the tarball on stdout, which scripts read.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { changeManifest, withoutPrepare } from './packed_manifest.mjs'
import { binaryLines, shippedBinaries } from './shipped_binaries.mjs'
import { notices } from './third_party_notices.mjs'
import { fail, ROOT } from './toolchain.mjs'

build()
if (shippedBinaries().length === 0) prebuild()
writeFileSync(join(ROOT, 'THIRD_PARTY_NOTICES'), notices())
console.error(binaryLines().join('\n'))
changeManifest(withoutPrepare)

/** What `prepare` does, which npm does not run once it is out of the manifest. */
function build() {
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', 'build_all.mjs')], {
    cwd: ROOT,
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
  })
  if (status !== 0) fail('The build failed; nothing is packed.')
}

function prebuild() {
  if (!existsSync(join(ROOT, 'node_modules', 'prebuildify'))) {
    fail('A package needs a binary, and the tools that build one are not installed: run "npm ci" first.')
  }
  console.error('prebuilds/ has no binary: building the one of this machine ("npm run prebuild").')
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', 'prebuild.mjs')], {
    cwd: ROOT,
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
  })
  if (status !== 0) fail('Without its binary the package would not load; nothing is packed.')
}
