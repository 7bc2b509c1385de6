/** Stands for a gateway on a host's pipe: sends every line back, and ends when the host has closed its side. */
import { HostPipe } from '../../../src/transport/pipe/stdio-host.ts'

const host = new HostPipe(process.stdin, process.stdout)
host.open({ line: (bytes) => host.write([bytes]), overflow: () => {}, ended: () => void host.close() })
