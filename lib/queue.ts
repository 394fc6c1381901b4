/**
 * Many files by many machines: a queue on Redis or Valkey, by the package `bullmq`.
 *
 * @packageDocumentation
 */
export type { QueuePlace } from './queue/connection.js'
export { type FileQueue, openQueue, type QueueCounts } from './queue/control.js'
export {
  type ConvertQueuedOptions,
  convertQueued,
  type QueueOnlyOptions,
  type QueueStall,
  type SubmitSummary,
  submitFiles,
} from './queue/convert_queued.js'
export { type QueueWorker, startWorker } from './queue/worker.js'
export type { WorkerEvent, WorkerOptions, WorkerReadOptions } from './queue/worker_options.js'
