/** A server and a host on the official SDK: `Peer server stdio | sse PORT | http PORT`, `Peer host`. */
final class Peer {
	public static void main(String[] args) throws Exception {
		if (args[0].equals("host")) Wire.serve(PeerHost::connect);
		else PeerServer.serve(args[1], args.length > 2 ? Integer.parseInt(args[2]) : 0);
	}
}
