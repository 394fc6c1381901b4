/** What an operator does with a queue: looks at it, pauses it, empties it. */
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
  /** Taken by no worker yet. */
  readonly waiting: number
  /** With a worker. */
  readonly active: number
  /** Waiting for another attempt. */
  readonly delayed: number
  /** Written, and not collected by their run yet. */
  readonly completed: number
  readonly failed: number
  /** Whether workers take nothing. */
  readonly isPaused: boolean
}

/** A queue of files. */
export interface FileQueue {
  counts(): Promise<QueueCounts>
  /** Workers finish what they have and take nothing more. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Removes the files that wait, those for another attempt included. Runs that wait for them submit them again. */
  drain(): Promise<void>
  /** Closes the connection; the queue stays. */
  close(): Promise<void>
}

/**
 * Opens a queue to look at it and to control it.
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

async function countsOf(queue: Queue): Promise<QueueCounts> {
  const isPaused = await queue.isPaused()
  const counts = await queue.getJobCounts(
    'waiting',
    'prioritized',
    'active',
    'delayed',
    'completed',
    'failed',
  )
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, completed = 0, failed = 0 } = counts
  return { waiting: waiting + prioritized, active, delayed, completed, failed, isPaused }
}
