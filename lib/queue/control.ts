/** Administration of a queue: counts, pause, resume, drain. */
import type { Queue } from 'bullmq'
import { checkOptions } from '../caller_input.js'
import {
  type CheckedPlace,
  Connections,
  checkPlace,
  connectionError,
  loadBullMq,
  type QueuePlace,
} from './connection.js'

/** Numbers of files by state. */
export interface QueueCounts {
  /** Not taken by a worker yet. */
  readonly waiting: number
  /** Being converted by a worker. */
  readonly active: number
  /** Failed, and waiting for the next attempt. */
  readonly delayed: number
  /** Converted, but not yet collected by the run that submitted them. */
  readonly completed: number
  readonly failed: number
  /** Workers that are connected; absent where the server does not list its clients. */
  readonly workers?: number
  /** Whether the queue is paused: workers take no files. */
  readonly isPaused: boolean
}

/** A queue of files. */
export interface FileQueue {
  counts(): Promise<QueueCounts>
  /** Workers finish their current files and take no new ones. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Removes the waiting and delayed files. Runs that wait for these files submit them again. */
  drain(): Promise<void>
  /** Closes the connection; the queue stays. */
  close(): Promise<void>
}

/**
 * Opens a queue for administration.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED without the package bullmq; ERR_IO where the queue cannot be reached
 */
export async function openQueue(place: QueuePlace): Promise<FileQueue> {
  checkOptions(place, 'openQueue', ['url', 'name'])
  const checked = checkPlace(place)
  const { Queue } = loadBullMq()
  const connections = new Connections(checked)
  const queue = new Queue(checked.name, { connection: await connections.open() })
  queue.on('error', () => undefined)
  return controls(queue, checked, connections)
}

function controls(queue: Queue, { label }: CheckedPlace, connections: Connections): FileQueue {
  const call = async <T>(action: () => Promise<T>): Promise<T> => {
    try {
      return await action()
    } catch (error) {
      throw connectionError(label, error)
    }
  }
  return {
    counts: () => call(() => countsOf(queue)),
    pause: () => call(() => queue.pause()),
    resume: () => call(() => queue.resume()),
    drain: () => call(() => queue.drain(true)),
    close: () => connections.endAfter(queue.close()),
  }
}

export async function countsOf(queue: Queue): Promise<QueueCounts> {
  const isPaused = await queue.isPaused()
  const workers = await queue.getWorkersCount().catch(() => undefined)
  const counts = await queue.getJobCounts(
    'waiting',
    'prioritized',
    'active',
    'delayed',
    'completed',
    'failed',
  )
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, completed = 0, failed = 0 } = counts
  const files = { waiting: waiting + prioritized, active, delayed, completed, failed }
  return { ...files, ...(workers !== undefined && { workers }), isPaused }
}
