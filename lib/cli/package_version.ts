/** The version of this package, from its manifest. */
import { createRequire } from 'node:module'

export function packageVersion(): string {
  const manifest = createRequire(import.meta.url)('../../package.json') as { version: string }
  return manifest.version
}
