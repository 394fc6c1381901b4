/** The shard of a list that this process has to convert, from the environment variables of array job schedulers. */
import { checkOptions, readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { checkShard, type Shard } from './shard.js'

/** The variables of a scheduler; `count` is absent where it does not provide the number of processes. */
interface Scheduler {
  readonly name: string
  readonly index: string
  readonly count?: string
  /** The index of the first process: a number, or the name of a variable. */
  readonly first: number | string
  /** The variable with the step between indices. */
  readonly step?: string
}

/**
 * Kubernetes: "Job", completion mode Indexed. AWS Batch: "Array job environment variables". Slurm: sbatch, "--array". Cloud Run:
 * "Container runtime contract", jobs.
 */
const SCHEDULERS: readonly Scheduler[] = [
  { name: 'AWS Batch', index: 'AWS_BATCH_JOB_ARRAY_INDEX', count: 'AWS_BATCH_JOB_ARRAY_SIZE', first: 0 },
  {
    name: 'Slurm',
    index: 'SLURM_ARRAY_TASK_ID',
    count: 'SLURM_ARRAY_TASK_COUNT',
    first: 'SLURM_ARRAY_TASK_MIN',
    step: 'SLURM_ARRAY_TASK_STEP',
  },
  { name: 'Cloud Run', index: 'CLOUD_RUN_TASK_INDEX', count: 'CLOUD_RUN_TASK_COUNT', first: 0 },
  { name: 'Kubernetes', index: 'JOB_COMPLETION_INDEX', first: 0 },
]

export interface SchedulerShardOptions {
  /** Number of processes (`completions` of the job), for Kubernetes, which does not provide it to processes. */
  readonly count?: number
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * The shard of this process, for `convertMany`, in array jobs of AWS Batch, Slurm and Cloud Run and in indexed jobs of
 * Kubernetes.
 *
 * @throws TileworkError ERR_ARGUMENT where no scheduler has started this process, where the count is missing, and where the
 * option `count` and the scheduler disagree
 */
export function schedulerShard(options: SchedulerShardOptions = {}): Shard {
  checkOptions(options, 'schedulerShard', ['count', 'env'])
  return readInput('The options of schedulerShard', () => shardOf(options.env ?? process.env, options.count))
}

function shardOf(env: Readonly<Record<string, string | undefined>>, given: number | undefined): Shard {
  const scheduler = SCHEDULERS.find(({ index }) => env[index] !== undefined)
  if (!scheduler) {
    const names = SCHEDULERS.map(({ index, name }) => `${index} (${name})`).join(', ')
    throw new TileworkError(
      'ERR_ARGUMENT',
      `This process was not started by a known job scheduler: none of ${names} is set.`,
    )
  }
  const { index, first, step } = scheduler
  const start = typeof first === 'number' ? first : numberIn(env, first)
  const distance = step !== undefined && env[step] !== undefined ? numberIn(env, step) : 1
  const told = scheduler.count === undefined ? undefined : numberIn(env, scheduler.count)
  const count = given ?? told
  if (count === undefined) {
    const message = `${scheduler.name} does not provide the number of processes; set the option count.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  if (told !== undefined && told !== count) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `count is ${valueText(given)}, but ${scheduler.count} is ${told}.`,
    )
  }
  const shard = { index: (numberIn(env, index) - start) / distance + 1, count }
  checkShard(shard)
  return shard
}

function numberIn(env: Readonly<Record<string, string | undefined>>, name: string): number {
  const text = env[name]
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text)
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(text)}; it must be a whole number.`)
}
