/**
 * Stands for a gateway that will be killed: starts one child that reads nothing, with the pid journal in the folder named by
 * the first argument and `setpriv` looked for in the second (empty: none), and prints the child's pid.
 */
import { createLauncher } from '../../../src/transport/process/launcher.ts'
import { PidJournal } from '../../../src/transport/process/pid-journal.ts'

const [folder = '', path] = process.argv.slice(2)
const journal = await PidJournal.open(folder)
const launch = createLauncher({ journal, ...(path ? { path } : {}) })
const tree = await launch({ command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'], env: {}, cwd: folder })
process.stdout.write(`${tree.pid}\n`)
