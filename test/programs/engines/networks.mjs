export const name = 'networks'
export async function run() {
  return { counts: {}, failures: [] }
}
