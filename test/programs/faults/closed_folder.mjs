/** Saves into a folder without write permission: ERR_IO with EACCES, and the old file is unchanged. */
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DisturbedChild } from '../disturb.mjs'
import { SAVES } from './disks.mjs'
import { digest, writeInput } from './inputs.mjs'
import { expectSystemError } from './vanishing.mjs'

/** User ID of `nobody`. Root may write anywhere, so the work runs as another user. */
const NOBODY = 65534

export async function testClosedFolder(context) {
  const { folder, fail, note } = context
  const [input, closed] = [join(folder, 'input.btf'), join(folder, 'closed')]
  const target = join(closed, 'target.btf')
  mkdirSync(closed)
  writeInput(input)
  writeInput(target, 1, 2)
  const old = digest(target)
  chmodSync(folder, 0o755)
  chmodSync(closed, 0o555)
  const child = new DisturbedChild(process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {})
  const started = await child.run({ kind: 'look' })
  if (!child.isAlive) {
    console.log(`skip   closed folder: the user ${NOBODY} cannot run this checkout (${started.exitCode})`)
  }
  for (const [name, work] of child.isAlive ? Object.entries(SAVES) : []) {
    const outcome = await child.run({ kind: 'save', input, target, ...work })
    expectSystemError(context, `closed folder, ${name}`, outcome, ['EACCES'])
    if (digest(target) !== old) fail(`closed folder, ${name}: the old file has changed`)
    if (readdirSync(closed).length !== 1) fail(`closed folder, ${name}: left ${readdirSync(closed)}`)
  }
  await child.close()
  // Otherwise a user who is not root cannot remove the folder.
  chmodSync(closed, 0o755)
  if (started.value) note('closed folder: ERR_IO with EACCES, old file as before')
}
