/**
 * Where the code is, for the packages that are published: `repository`, `homepage` and `bugs` of package.json. The checkout has no
 * such address, so that a fork does not name another's; TILEWORK_REPOSITORY does, as in `https://github.com/owner/tilework`.
 */
import { fail } from './toolchain.mjs'

/** @param {string | undefined} address - of a repository on GitHub or a server of the same paths */
export function repositoryFields(address = process.env.TILEWORK_REPOSITORY) {
  if (!address) return {}
  const url = URL.canParse(address) ? new URL(address) : undefined
  const isRepository = url?.protocol === 'https:' && /^\/[\w.-]+\/[\w.-]+$/.test(url.pathname)
  if (!isRepository || url.search || url.hash || url.username) {
    return fail(
      `TILEWORK_REPOSITORY is "${address}"; it must be an address such as https://github.com/owner/tilework.`,
    )
  }
  const page = url.href.replace(/\.git$/, '')
  return {
    homepage: `${page}#readme`,
    bugs: `${page}/issues`,
    repository: { type: 'git', url: `git+${page}.git` },
  }
}
