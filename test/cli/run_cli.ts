/** Runs the command line inside the test's process. */
import { run } from '../../lib/cli/run.js'

export interface CliResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliSetting {
  readonly isTTY?: boolean
  /** Columns of the terminal. */
  readonly columns?: number
  readonly signal?: AbortSignal
  readonly env?: Record<string, string>
  readonly stdin?: () => AsyncIterable<Uint8Array | string>
  /** Called after each write to stdout. */
  readonly onOutput?: (text: string) => void
  /** Called after each write to stderr. */
  readonly onMessage?: (text: string) => void
}

export async function runCli(args: readonly string[], setting: CliSetting = {}): Promise<CliResult> {
  const { onOutput, onMessage, columns, ...options } = setting
  let stdout = ''
  let stderr = ''
  const code = await run(args, {
    stdout: {
      write: (text) => {
        stdout += text
        onOutput?.(text)
      },
      ...(columns !== undefined && { columns }),
    },
    stderr: {
      write: (text) => {
        stderr += text
        onMessage?.(text)
      },
    },
    ...options,
  })
  return { code, stdout, stderr }
}

/** The JSON that a command printed, and nothing beside it. */
export async function runJson<T>(args: readonly string[], expectedCode = 0): Promise<T> {
  const { code, stdout, stderr } = await runCli([...args, '--json'])
  if (code !== expectedCode) throw new Error(`exit code ${code}, not ${expectedCode}: ${stderr}${stdout}`)
  return JSON.parse(stdout) as T
}
