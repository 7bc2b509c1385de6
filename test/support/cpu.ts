/** What something costs in CPU, whoever else is busy. */

/** Milliseconds: once if that is within the budget, else the least of three, because collections of garbage and neighbours are not its own. */
export const leastMs = (run: () => void, budgetMs: number): number => {
  let least = Infinity
  for (let attempt = 0; attempt < 3 && least > budgetMs; attempt++) {
    const before = process.cpuUsage()
    run()
    least = Math.min(least, process.cpuUsage(before).user / 1_000)
  }
  return least
}
