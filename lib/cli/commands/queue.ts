/** `tilework queue`: shows the state of a queue and controls it. */
import { Argument, type Command } from 'commander'
import { type FileQueue, openQueue } from '../../queue.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { formatCount } from '../text/byte_count.js'
import { printJson } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'

interface QueueFlags {
  readonly queue: string
  readonly queueName?: string
  readonly json?: boolean
}

const ACTIONS = {
  status: async () => undefined,
  pause: (queue: FileQueue) => queue.pause(),
  resume: (queue: FileQueue) => queue.resume(),
  drain: (queue: FileQueue) => queue.drain(),
} as const

const EXAMPLES = `
Examples:
  tilework queue status --queue redis://queue:6379 --json
  tilework queue pause --queue redis://queue:6379

After pause, workers finish their current files and take no new ones until resume. drain removes waiting
files; a run that waits for them submits them again, so stop the run first.`

export function addQueue(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  program
    .command('queue')
    .summary('show a queue of files, pause, resume or empty it')
    .description('Performs an action on a queue, and prints the number of its files in each state.')
    .addArgument(new Argument('<action>', 'what to do').choices(Object.keys(ACTIONS)))
    .requiredOption('--queue <url>', 'redis://[user:password@]host[:port][/db], or rediss:// for TLS')
    .option('--queue-name <name>', 'name of the queue on that server (default: tilework)')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (action: keyof typeof ACTIONS, flags: QueueFlags) =>
      finish(await control(action, flags, terminal)),
    )
}

async function control(
  action: keyof typeof ACTIONS,
  { queue: url, queueName, json }: QueueFlags,
  terminal: Terminal,
): Promise<ExitCode> {
  const queue = await openQueue({ url, ...(queueName !== undefined && { name: queueName }) })
  try {
    await ACTIONS[action](queue)
    const counts = await queue.counts()
    if (json) printJson(counts, terminal)
    else {
      const { isPaused, workers, ...numbers } = counts
      const states = Object.entries(numbers).map(([state, files]) => `${files} ${state}`)
      if (workers !== undefined) states.push(formatCount(workers, 'worker'))
      terminal.stdout.write(`${states.join(', ')}${isPaused ? '; paused' : ''}\n`)
    }
    return EXIT.ok
  } finally {
    await queue.close()
  }
}
