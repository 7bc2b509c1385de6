package peers;

import org.slf4j.LoggerFactory;
import org.springframework.ai.tool.ToolCallbackProvider;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import org.springframework.ai.tool.method.MethodToolCallbackProvider;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A server with the starter of Spring AI and nothing set against what Spring Boot prints. */
@SpringBootApplication
public class SpringPeer {
  public static void main(String[] args) {
    SpringApplication.run(SpringPeer.class, args);
  }

  @Bean
  ToolCallbackProvider tools() {
    return MethodToolCallbackProvider.builder().toolObjects(new Tools()).build();
  }

  static class Tools {
    @Tool(description = "Says it again.")
    String echo(@ToolParam(description = "what is said") String text) {
      return text;
    }

    @Tool(description = "Prints a line and logs one, both on stdout.")
    String noisy(int lines) {
      for (int line = 1; line <= lines; line++) {
        System.out.println("[noise] line " + line);
        LoggerFactory.getLogger(Tools.class).info("line {}", line);
      }
      return "printed " + lines;
    }

    @Tool(description = "Fails.")
    String fail() {
      throw new IllegalStateException("it failed");
    }
  }
}
