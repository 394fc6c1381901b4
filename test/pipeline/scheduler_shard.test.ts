/** Parts of a list by the environment of a scheduler. */
import { describe, expect, it } from 'vitest'
import { schedulerShard } from '../../lib/internal.js'
import { runCli } from '../cli/run_cli.js'

describe('schedulerShard', () => {
  const slurm = (id: number, min: number, count: number, step?: number) => ({
    SLURM_ARRAY_TASK_ID: String(id),
    SLURM_ARRAY_TASK_MIN: String(min),
    SLURM_ARRAY_TASK_COUNT: String(count),
    ...(step !== undefined && { SLURM_ARRAY_TASK_STEP: String(step) }),
  })

  it.each([
    ['AWS Batch', { AWS_BATCH_JOB_ARRAY_INDEX: '0', AWS_BATCH_JOB_ARRAY_SIZE: '8' }, undefined, 1, 8],
    ['Slurm, --array=1-8', slurm(3, 1, 8), undefined, 3, 8],
    ['Slurm, --array=10-16:2', slurm(14, 10, 4, 2), undefined, 3, 4],
    ['Cloud Run', { CLOUD_RUN_TASK_INDEX: '4', CLOUD_RUN_TASK_COUNT: '5' }, undefined, 5, 5],
    ['Kubernetes', { JOB_COMPLETION_INDEX: '7' }, 8, 8, 8],
  ])('%s', (_, env, count, index, of) => {
    expect(schedulerShard({ env, ...(count !== undefined && { count }) })).toEqual({ index, count: of })
  })

  it.each([
    [{}, undefined, /none of AWS_BATCH_JOB_ARRAY_INDEX \(AWS Batch\), .* is set/],
    [
      { JOB_COMPLETION_INDEX: '7' },
      undefined,
      /Kubernetes does not provide the number of processes; set the option count/,
    ],
    [{ JOB_COMPLETION_INDEX: '8' }, 8, /9 of 8/],
    [
      { CLOUD_RUN_TASK_INDEX: '4', CLOUD_RUN_TASK_COUNT: '5' },
      6,
      /count is 6, but CLOUD_RUN_TASK_COUNT is 5/,
    ],
    [{ JOB_COMPLETION_INDEX: '-1' }, 8, /JOB_COMPLETION_INDEX is "-1"/],
    [{ SLURM_ARRAY_TASK_ID: '3' }, undefined, /SLURM_ARRAY_TASK_MIN is undefined/],
    // An irregular list, --array=1,2,9: the numbers are not those of parts.
    [slurm(9, 1, 3), undefined, /9 of 3/],
  ])('refuses %j with the count %s', (env, count, message) => {
    const call = () => schedulerShard({ env, ...(count !== undefined && { count }) })
    expect(call).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT', message: expect.stringMatching(message) }),
    )
  })

  it('--shard auto says what is missing', async () => {
    const { code, stderr } = await runCli(['convert', '*.npy', '--out-dir', 'x', '--shard', 'auto'])
    expect(code).toBe(64)
    expect(stderr).toContain('This process was not started by a known job scheduler')
  })
})
