/**
 * What a worker does for one job: converts the file within the worker's scope and limits, whatever the job says. Its paths are
 * opened from the descriptors of the roots, and the length of its output is checked before anything is allocated.
 */
import { withinRoots } from '../bytes/confinement.js'
import type { RemoteOptions } from '../bytes/remote/remote_options.js'
import { timeLeft } from '../deadline.js'
import { convertFile, convertOptionNames, readConvertOptions } from '../pipeline/convert.js'
import type { FilePair } from '../pipeline/many/output_paths.js'
import { stateAt } from '../pipeline/many/remote_files.js'
import { convertPair, type Finished } from '../pipeline/many/run_pairs.js'
import { type OpenFile, open } from '../pipeline/open.js'
import type { SaveProgress } from '../pipeline/progress.js'
import type { JobData } from './job_data.js'
import type { CheckedWorkerOptions } from './worker_options.js'

export interface JobSurroundings
  extends Pick<CheckedWorkerOptions, 'scope' | 'open' | 'remote' | 'maxOutputBytes' | 'deadline'> {
  /** Output folders that exist; created ones are added. */
  readonly folders: Set<string>
  readonly signal: AbortSignal
  readonly onProgress: (progress: SaveProgress) => void
}

/** The input and output of a job. @throws TileworkError ERR_PATH_ESCAPE */
export function pairOfJob({ input, output }: JobData, { scope }: Pick<JobSurroundings, 'scope'>): FilePair {
  return { input: scope.input(input), output: scope.output(output), byteLength: 0 }
}

/** Never rejects: a failure is the outcome. */
export function convertJob(
  { settings, options }: JobData,
  pair: FilePair,
  {
    scope,
    open: readOptions,
    remote,
    maxOutputBytes,
    deadline,
    folders,
    signal,
    onProgress,
  }: JobSurroundings,
): Promise<Finished> {
  const remoteOf = (name: string): RemoteOptions => ({
    ...remote,
    signal,
    ...(scope.isForeignHost(name) && { addresses: 'public' as const }),
  })
  const { open: readAs, ...changes } = options
  const conversion = {
    finished: { get: () => undefined },
    settings,
    signal,
    stateOf: (path: string) => stateAt(path, remoteOf(path)),
    open: (path: string, began: number) => {
      const own = { ...remoteOf(path), ...timeLeft(deadline, began, remote?.deadline) }
      return open(path, { ...readOptions, ...readAs, remote: own })
    },
    convert: async (file: OpenFile, { output }: FilePair, began: number) => {
      const own = {
        maxOutputBytes,
        ...timeLeft(deadline, began),
        signal,
        remote: remoteOf(output),
        onProgress,
      }
      return convertFile(
        file,
        output,
        readConvertOptions({ ...changes, ...own }, 'a job', convertOptionNames()),
      )
    },
  }
  // What the scope has checked are paths, which may lead elsewhere by now.
  const confinement = { roots: scope.folders, isSole: readOptions?.hardLinks !== 'allow' }
  return withinRoots(confinement, () => convertPair(pair, conversion, folders))
}
